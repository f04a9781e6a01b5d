"""The documented examples, word for word."""

import asyncio

import pytest

from tests.world import World
from toolreeve.approval.request import Answer, Request
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolreeveError
from toolreeve.core.verdict import Decision
from toolreeve.permissions import ApprovalManager, ExecutionContext, PermissionMode, PermissionPolicy, PermissionRule


def test_bypass_mode_allows_all_tools() -> None:
    ctx = ExecutionContext(mode=PermissionMode.BYPASS)
    policy = PermissionPolicy(ctx)

    assert policy.check_permission("bash_command", {"command": "ls"}, 0.0) == (True, None)


def test_plan_mode_reads_and_does_not_write() -> None:
    ctx = ExecutionContext(mode=PermissionMode.PLAN)
    policy = PermissionPolicy(ctx)

    assert policy.check_permission("Read", {"path": "/data/file.txt"}, 0.0) == (True, None)
    assert policy.check_permission("Write", {"path": "/data/file.txt"}, 0.0) == (
        False,
        "Plan mode: Only read-only tools allowed",
    )


def test_a_budget_is_enforced() -> None:
    ctx = ExecutionContext(budget_limit=10.0)
    ctx.budget_used = 9.5
    policy = PermissionPolicy(ctx)

    assert policy.check_permission("expensive_tool", {}, 1.0) == (
        False,
        "Budget exceeded: $9.50 spent, $0.50 remaining, tool needs $1.00",
    )


def test_a_denied_tool_is_disallowed() -> None:
    policy = PermissionPolicy(ExecutionContext(denied_tools={"bash_command"}))

    assert policy.check_permission("bash_command", {}, 0.0) == (
        False,
        "Tool 'bash_command' is explicitly disallowed",
    )


def test_an_allowed_tool_runs_despite_its_danger() -> None:
    policy = PermissionPolicy(ExecutionContext(allowed_tools={"bash_command"}))

    assert policy.check_permission("bash_command", {}, 0.0) == (True, None)


@pytest.mark.parametrize(
    ("tool", "answer"),
    [("read_file", (True, None)), ("write_file", (None, None)), ("bash", (None, None)), ("odd", (None, None))],
)
def test_default_mode_asks_for_what_is_not_harmless(tool: str, answer: tuple[bool | None, str | None]) -> None:
    assert PermissionPolicy(ExecutionContext()).check_permission(tool, {}) == answer


def test_a_change_of_the_context_is_seen_by_the_next_check() -> None:
    ctx = ExecutionContext(budget_limit=1.0)
    policy = PermissionPolicy(ctx)
    assert policy.check_permission("bash", {}, 0.5) == (None, None)

    ctx.allowed_tools.add("bash")
    assert policy.check_permission("bash", {}, 0.5) == (True, None)

    ctx.budget_used = 0.75
    assert policy.check_permission("bash", {}, 0.5)[0] is False

    ctx.budget_limit = None
    ctx.rules.append(PermissionRule(decision="deny", tool="bash", reason="not here"))
    assert policy.check_permission("bash", {}, 0.5) == (False, "not here")

    ctx.mode = PermissionMode.BYPASS
    assert policy.check_permission("bash", {}) == (True, None)


def test_rules_are_asked_about_arguments_relative_to_the_root() -> None:
    rules = [PermissionRule(decision="allow", tool="write_file", when={"path": {"under": "src"}})]
    policy = PermissionPolicy(ExecutionContext(rules=rules), root="/w")

    assert policy.check_permission("write_file", {"path": "src/a.py"}) == (True, None)
    assert policy.check_permission("write_file", {"path": "/w/src/../etc/a"}) == (None, None)


def test_a_bare_text_is_not_taken_for_a_set_of_letters() -> None:
    with pytest.raises(ToolreeveError, match=r"write \{'bash'\}"):
        ExecutionContext(denied_tools="bash")

    context = ExecutionContext()
    context.denied_tools = "bash"  # type: ignore[assignment]
    with pytest.raises(ToolreeveError):
        PermissionPolicy(context).check_permission("bash", {})


def test_a_mode_may_be_given_by_its_word_and_no_other_word() -> None:
    context = ExecutionContext(mode="plan")  # type: ignore[arg-type]

    assert PermissionPolicy(context).check_permission("Write", {})[1] == "Plan mode: Only read-only tools allowed"

    context.mode = "yolo"  # type: ignore[assignment]
    with pytest.raises(ValueError, match="yolo"):
        PermissionPolicy(context).check_permission("Write", {})


def test_an_explanation_holds_the_whole_decision() -> None:
    explanation = PermissionPolicy(ExecutionContext(mode=PermissionMode.STRICT)).explain("bash", {"command": "ls"})

    assert explanation.to_dict()["effect"] == "ask"
    assert explanation.verdict.change == "a rule: {tool: bash, max_danger: safe, decision: allow}"


@pytest.mark.parametrize(("answer", "approved"), [(True, True), (False, False)])
async def test_a_person_is_asked_about_a_tool_by_its_name(answer: bool, approved: bool) -> None:
    async def approve(request: Request) -> bool:
        assert (request.tool, request.args) == ("write_file", {"path": "a"})
        return answer

    manager = ApprovalManager(approve)

    assert await manager.request_approval("write_file", {"path": "a"}, ExecutionContext()) is approved


async def test_no_answer_is_not_an_approval() -> None:
    async def silent(_: Request) -> bool:
        await asyncio.Event().wait()
        return True

    assert await ApprovalManager(silent).request_approval("bash", {}, ExecutionContext(), timeout=0.02) is False


async def test_what_the_context_denies_is_not_asked() -> None:
    asked: list[Request] = []

    async def approve(request: Request) -> bool:
        asked.append(request)
        return True

    context = ExecutionContext(denied_tools={"bash"})

    assert await ApprovalManager(approve).request_approval("bash_command", {}, context) is False
    assert asked == []


async def test_a_yes_to_other_arguments_is_not_a_yes_to_these() -> None:
    async def approve(request: Request) -> Answer:
        return request.allow(args={"command": "ls"})

    assert await ApprovalManager(approve).request_approval("bash", {"command": "rm"}, ExecutionContext()) is False


async def test_without_a_channel_a_permission_error_says_what_to_do() -> None:
    with pytest.raises(PermissionError, match=r"Tool 'write_file' \(danger=medium\) requires approval"):
        await ApprovalManager().request_approval("write_file", {}, ExecutionContext())


COMMANDS = (
    "ls",
    "cat .env",
    "pytest -q",
    "touch x",
    "rm -rf /",
    "ls; pytest",
    "git add -A",
    "curl https://example.com",
    "a b",
)


@pytest.mark.parametrize("tool", ["bash", "execute_command"])
@pytest.mark.parametrize("mode", list(PermissionMode))
async def test_the_runtime_decides_about_commands_as_the_policy_by_itself(
    world: World, tool: str, mode: PermissionMode
) -> None:
    policy = PermissionPolicy(ExecutionContext(mode=mode))
    answers = {Decision.ALLOW: True, Decision.ASK: None, Decision.DENY: False}

    async with world.reeve(policy=policy) as reeve:
        for command in COMMANDS:
            decided = reeve.explain(tool, {"command": command}).verdict
            assert policy.check_permission(tool, {"command": command})[0] is answers[decided.decision], command
            assert policy.explain(tool, {"command": command}).verdict.decision is decided.decision


async def test_a_runtime_keeps_what_is_spent_up_to_date(world: World) -> None:
    context = ExecutionContext(budget_limit=1.0)
    policy = PermissionPolicy(context)

    async with world.reeve(policy=policy) as reeve:
        call = ToolCall(tool="calculate", args={"expression": "1"}, estimated_cost=0.95)
        assert (await reeve.run(call)).success

        assert context.budget_used == pytest.approx(0.95)
        assert policy.check_permission("calculate", {"expression": "1"}, 0.09)[0] is False


@pytest.mark.parametrize("cost", [-5.0, float("nan")])
async def test_a_cost_below_zero_is_an_invalid_parameter_everywhere(world: World, cost: float) -> None:
    call = ToolCall(tool="calculate", args={"expression": "1"}, estimated_cost=cost)

    for context in (ExecutionContext(), ExecutionContext(budget_limit=1.0)):
        policy = PermissionPolicy(context)
        assert policy.check_permission("calculate", {}, cost)[0] is False
        async with world.reeve(policy=policy) as reeve:
            result = await reeve.run(call)

        assert result.error is not None
        assert (result.error.code, result.error.retryable) == (ErrorCode.INVALID_PARAMS, False)
