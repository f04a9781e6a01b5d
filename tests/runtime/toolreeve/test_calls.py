"""Calls of a program: files, rules, undo, batches, other names."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.world import World
from toolreeve import (
    DangerLevel,
    ErrorCode,
    ExecutionContext,
    PermissionMode,
    PermissionPolicy,
    PermissionRule,
    ToolError,
    tool,
)
from toolreeve.config import Policy, Workspace
from toolreeve.core.verdict import Decision
from toolreeve.policy.known_tools import get_tool_danger_level


async def test_files_are_written_read_and_put_back(world: World) -> None:
    async with world.reeve(settings=world.settings(policy=Policy(allowed_tools=("write_file", "undo")))) as reeve:
        first = await reeve.call("write_file", path="notes/a.txt", content="one")
        second = await reeve.call("write_file", {"path": "notes/a.txt"}, content="two")
        await reeve.undo(second.meta.call_id)
        read = await reeve.call("read_file", path="notes/a.txt")
        undone = await reeve.undo(first.meta.call_id)
        records = await reeve.audit.show(undone.meta.call_id)

    assert (first.success, second.success, read.output) == (True, True, "one")
    assert not (world.workspace / "notes").exists()
    assert records[-1].body["tool"] == "undo"


async def test_undo_meets_the_rules_about_what_it_would_change(world: World) -> None:
    rule = PermissionRule(effect=["write", "delete"], target={"under": "tests"}, decision="deny", reason="tests stay")
    async with world.reeve(policy=PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))) as reeve:
        written = await reeve.call("write_file", path="tests/a.txt", content="x")

    async with world.reeve(policy=[rule], approve=lambda _: True) as reeve:
        refused = await reeve.undo(written.meta.call_id)

    assert refused.error is not None
    assert refused.error.message == "tests stay"
    assert (world.workspace / "tests/a.txt").exists()


async def test_nobody_is_asked_about_what_the_guard_refuses(world: World) -> None:
    asked: list[Any] = []

    async def approve(request: Any) -> bool:
        asked.append(request)
        return True

    async with world.reeve(approve=approve) as reeve:
        secret = await reeve.call("write_file", path=".env", content="x")
        outside = await reeve.call("delete_file", path="/etc/passwd")
        governing = await reeve.call("write_file", path="toolreeve.toml", content="")

    assert not asked
    codes = [result.error.code for result in (secret, outside, governing) if result.error]
    assert codes == [ErrorCode.PATH_FORBIDDEN] * 3


async def test_the_question_shows_what_would_change(world: World) -> None:
    (world.workspace / "a.txt").write_text("old\n")
    seen: list[str] = []

    async def approve(request: Any) -> bool:
        seen.append(request.preview)
        return False

    async with world.reeve(approve=approve) as reeve:
        await reeve.call("write_file", path="a.txt", content="new\n")

    assert "-old" in seen[0]
    assert "+new" in seen[0]


async def test_a_missing_file_is_answered_with_what_was_meant(world: World) -> None:
    (world.workspace / "backend/tests").mkdir(parents=True)
    (world.workspace / "backend/tests/test_api.py").write_text("")

    async with world.reeve() as reeve:
        result = await reeve.call("read_file", path="tests/test_api.py")

    assert result.error is not None
    assert result.error.code in (ErrorCode.FILE_NOT_FOUND, ErrorCode.DIR_NOT_FOUND)
    assert result.error.suggestions[0] == "backend/tests/test_api.py"
    assert result.to_dict()["meta"]["auto_recovery"] is True


async def test_the_runtimes_own_state_is_out_of_reach_even_inside_the_workspace(world: World) -> None:
    from toolreeve.config import State

    inside = world.settings(state=State(dir=str(world.workspace / "state")))
    async with world.reeve(
        settings=inside, policy=PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
    ) as reeve:
        read = await reeve.call("read_file", path="state/toolreeve.db")
        written = await reeve.call("write_file", path="state/toolreeve.db", content="")

    assert read.error is not None
    assert written.error is not None
    assert (read.error.code, written.error.code) == (ErrorCode.PATH_FORBIDDEN, ErrorCode.PATH_FORBIDDEN)
    assert written.meta.verdict.layer == "floor"


@pytest.mark.parametrize("mode", list(PermissionMode))
async def test_every_registered_tool_has_a_decided_outcome_in_every_mode(world: World, mode: PermissionMode) -> None:
    async with world.reeve(policy=PermissionPolicy(ExecutionContext(mode=mode))) as reeve:
        for bound in reeve.tools.list():
            args = {name: _sample(schema) for name, schema in bound.spec.input["properties"].items()}
            args = {name: value for name, value in args.items() if name in bound.spec.input["required"]}
            verdict = reeve.explain(bound.spec.name, args).verdict
            danger = bound.danger(args)
            reads = bound.spec.read_only or (bound.assess is not None and danger is DangerLevel.SAFE)

            assert verdict.layer != "none"
            accepted = danger <= DangerLevel.LOW or bound.spec.undoable
            expected = {
                PermissionMode.BYPASS: {Decision.ALLOW},
                PermissionMode.PLAN: {Decision.ALLOW} if reads else {Decision.DENY},
                PermissionMode.DEFAULT: {Decision.ALLOW} if danger <= DangerLevel.LOW else {Decision.ASK},
                PermissionMode.ACCEPT_EDITS: {Decision.ALLOW} if accepted else {Decision.ASK},
                PermissionMode.STRICT: {Decision.DENY} if danger >= DangerLevel.HIGH else {Decision.ASK},
            }[mode]
            refused = verdict.layer == "tool"  # the arguments are not a URL, or no program of the system
            assert refused or verdict.decision in expected, (bound.spec.name, mode, verdict)


def _sample(schema: dict[str, Any]) -> Any:
    kind = schema.get("type")
    return [{"old": "a", "new": "b"}] if kind == "array" else 1 if kind == "integer" else "a"


def test_what_policy_knows_of_the_builtin_tools_is_what_they_say_themselves(world: World) -> None:
    for bound in world.reeve().tools.list():
        if bound.spec.name != "undo":
            assert get_tool_danger_level(bound.spec.name) is bound.spec.danger, bound.spec.name


async def test_a_call_in_a_batch_or_chain_keeps_its_own_session_and_principal(world: World) -> None:
    from toolreeve import Context, Principal, ToolCall

    @tool(danger=DangerLevel.SAFE)
    async def whose(ctx: Context, after: str = "") -> str:
        """Tell whose call it is."""
        return f"{after}{ctx.principal.user}"

    call = ToolCall(tool="whose", args={"after": "{{previous.output}}+"}, session="s", principal=Principal(user="ann"))
    async with world.reeve(tools=[whose]) as reeve:
        _, chained = await reeve.chain([{"tool": "whose"}, call])
        (together,) = await reeve.batch([ToolCall(tool="whose", args={}, principal=Principal(user="bob"))])

    assert (chained.output, chained.meta.session, together.output) == ("local+ann", "s", "bob")


async def test_a_rule_from_code_decides(world: World) -> None:
    rule = PermissionRule(tool="read_file", when={"path": {"glob": "*.key"}}, decision="deny", reason="keys stay here")
    (world.workspace / "a.key").write_text("k")
    (world.workspace / "a.txt").write_text("t")

    async with world.reeve(policy=[rule]) as reeve:
        refused = await reeve.call("read_file", path="a.key")
        allowed = await reeve.call("read_file", path="a.txt")

    assert refused.error is not None
    assert (refused.error.code, refused.error.message) == (ErrorCode.DENIED, "keys stay here")
    assert allowed.success


@pytest.mark.parametrize("before", ["rules:\n  - {tool: delete_file, decision: deny}\n", "rules: []\n", ""])
async def test_answering_always_writes_a_rule_that_holds_in_the_next_run(
    world: World, tmp_path: Path, before: str
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(before)
    settings = world.settings(policy=Policy(files=(str(policy),)))
    asked: list[str] = []

    async def always(request: Any) -> Any:
        asked.append(request.tool)
        return request.allow(scope="always")

    for _ in range(2):
        async with world.reeve(settings=settings, approve=always) as reeve:
            for _ in range(2):
                assert (await reeve.call("write_file", path="a.txt", content="x")).success

    assert asked == ["write_file"]
    assert policy.read_text().startswith((before or "rules:\n").replace(" []", "") + "  - {")


async def test_rules_for_always_keep_the_link_the_mode_and_each_other(world: World, tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "policy.yaml"
    real.write_text("rules:\n- {tool: delete_file, decision: deny}\n")
    real.chmod(0o640)
    link.symlink_to(real)
    settings = world.settings(policy=Policy(files=(str(link),)))

    async def always(request: Any) -> Any:
        return request.allow(scope="always")

    async with (
        world.reeve(settings=settings, approve=always) as one,
        world.reeve(settings=settings, approve=always) as two,
    ):
        await asyncio.gather(
            *(reeve.call("write_file", path=f"{number}.txt", content="") for number, reeve in enumerate([one, two] * 3))
        )

    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_text().count("approved permanently") == 6


async def test_writing_can_be_turned_off_for_good(world: World) -> None:
    settings = world.settings(workspace=Workspace(dir=str(world.workspace), allow_write=False))
    bypass = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))

    async with world.reeve(settings=settings, policy=bypass) as reeve:
        result = await reeve.call("write_file", path="a.txt", content="x")

    assert result.error is not None
    assert result.error.code is ErrorCode.WRITE_DISABLED


async def test_a_tool_object_of_ones_own_is_called_like_any_other(world: World) -> None:
    class Shout:
        name = "shout"
        description = "Say it loudly."
        danger = DangerLevel.SAFE

        @property
        def input_schema(self) -> dict[str, Any]:
            return {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

        async def execute(self, tool_input: dict[str, Any]) -> str:
            return str(tool_input["text"]).upper()

    async with world.reeve(tools=[Shout()]) as reeve:
        assert (await reeve.call("shout", text="hi")).output == "HI"


async def test_a_call_takes_a_session_and_a_timeout_unless_the_tool_has_its_own(world: World) -> None:
    @tool(danger="safe")
    def own(timeout: int, session: str = "") -> str:
        """Have both."""
        return f"{timeout} {session}"

    @tool(danger="safe")
    async def slow() -> None:
        """Never end."""
        await asyncio.Event().wait()

    async with world.reeve(tools=[own, slow]) as reeve:
        late = await reeve.call("slow", session="s", timeout=0.05)
        mine = await reeve.call("own", timeout=7, session="x")
        both = await reeve.call("own", {"timeout": 7, "session": "x"}, session="y")

    assert late.error is not None
    assert (late.error.code, late.meta.session) == (ErrorCode.TIMEOUT, "s")
    assert (mine.output, mine.meta.session) == ("7 x", reeve.session)
    assert (both.output, both.meta.session) == ("7 x", "y")


async def test_unwrap_gives_the_output_or_raises_the_error(world: World) -> None:
    async with world.reeve() as reeve:
        assert (await reeve.call("calculate", expression="6*7")).unwrap() == 42
        with pytest.raises(ToolError, match="File not found") as caught:
            (await reeve.call("read_file", path="none")).unwrap()

    assert caught.value.code is ErrorCode.FILE_NOT_FOUND


@pytest.mark.parametrize(
    ("tool", "args", "output"),
    [
        ("Read", {"file_path": "a.txt", "limit": 1}, "one\n"),
        ("Write", {"file_path": "b.txt", "content": "x"}, None),
        ("Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, None),
        ("Bash", {"command": "cat a.txt", "timeout": 5000, "description": "Show it"}, "one\ntwo\n"),
        ("Grep", {"pattern": "TWO", "-i": True}, None),
        ("Glob", {"pattern": "*.txt"}, ["a.txt"]),
        ("LS", {"path": "."}, None),
    ],
)
async def test_the_names_and_arguments_of_agent_clients_are_understood(
    world: World, tool: str, args: dict[str, Any], output: Any
) -> None:
    (world.workspace / "a.txt").write_text("one\ntwo\n")
    policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))

    async with world.reeve(policy=policy) as reeve:
        result = await reeve.call(tool, args)

    assert result.error is None
    assert output is None or result.output == output


async def test_an_argument_that_we_cannot_honour_is_refused(world: World) -> None:
    async with world.reeve() as reeve:
        result = await reeve.call("Edit", file_path="a", old_string="x", new_string="y", replace_all=True)

    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMS
