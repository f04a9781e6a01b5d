import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.tool import bind, tool
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.known_tools import ALIASES, KNOWN, canonical
from toolreeve.policy.layers import LAYERS, MAX_TOOL_POLICIES, decide, with_rationale
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule, protect
from toolreeve.policy.state import Budget, PolicyState

NAMES = sorted([*KNOWN, *ALIASES, "never_heard_of", "git__push", "mcp__git__push"])


def rule(decision: str, **parts: object) -> PermissionRule:
    return PermissionRule(decision=decision, **parts)  # type: ignore[arg-type]


def test_the_layers_stand_in_the_documented_order() -> None:
    assert [layer.__name__ for layer in LAYERS] == [
        "bypass",
        "budget",
        "plan",
        "denied",
        "allowed",
        "ruled",
        "exhaustion",
        "mode_default",
    ]


READS = "read_file list_directory search_text calculate get_system_info http_get git_status WebFetch"
EDITS = "write_file edit_file move_file Write"
CHANGES = "http_post execute_command run_tests undo"
DANGEROUS = "delete_file bash Bash never_heard_of git__push mcp__git__push"
ARGS = {"move_file": {"source": "a", "destination": "b"}}
BY_MODE = {
    READS: {"bypass": "allow", "plan": "allow", "default": "allow", "accept_edits": "allow", "strict": "ask"},
    EDITS: {"bypass": "allow", "plan": "deny", "default": "ask", "accept_edits": "allow", "strict": "ask"},
    CHANGES: {"bypass": "allow", "plan": "deny", "default": "ask", "accept_edits": "ask", "strict": "ask"},
    DANGEROUS: {"bypass": "allow", "plan": "deny", "default": "ask", "accept_edits": "ask", "strict": "deny"},
}


@pytest.mark.parametrize(
    ("name", "decisions"), [(name, decisions) for names, decisions in BY_MODE.items() for name in names.split()]
)
def test_a_tool_is_decided_by_its_danger_in_every_mode(name: str, decisions: dict[str, str]) -> None:
    found = {
        mode.value: decide(
            build_action(name, ARGS.get(name, {"path": "a", "content": "b"})), PolicyState(mode=mode)
        ).decision.word
        for mode in PermissionMode
    }

    assert found == decisions


@pytest.mark.parametrize(("name", "mode"), list(itertools.product(NAMES, PermissionMode)))
def test_every_known_tool_gets_a_decision_from_a_layer(name: str, mode: PermissionMode) -> None:
    assert decide(build_action(name, {}), PolicyState(mode=mode)).layer != "none"


def test_a_list_of_allowed_tools_allows_no_other_tool() -> None:
    state = PolicyState.of(allowed_tools=["edit_file"])

    assert decide(build_action("edit_file", {}), state).decision is Decision.ALLOW
    assert decide(build_action("write_file", {}), state).decision is Decision.ASK


@pytest.mark.parametrize(("given", "shown"), [("by hand", "by hand"), (None, "Rule 'r' says ask for 'read_file'")])
def test_the_reason_of_a_rule_is_shown_or_made_from_its_name(given: str | None, shown: str) -> None:
    state = PolicyState.of(rules=[rule("ask", tool="read_file", id="r", reason=given)])

    assert decide(build_action("read_file", {}), state).reason == shown


def test_decisions_by_tool_are_remembered_within_bounds() -> None:
    state = PolicyState.of(rules=[rule("ask", tool="a*")])

    for number in range(MAX_TOOL_POLICIES):
        decide(build_action(f"a{number}", {}), state)
    assert len(state.tool_policies) == MAX_TOOL_POLICIES
    decide(build_action("another", {}), state)

    assert len(state.tool_policies) == 1


@pytest.mark.parametrize(
    ("mode", "is_remembered"), [(PermissionMode.DEFAULT, True), (PermissionMode.ACCEPT_EDITS, False)]
)
def test_a_verdict_is_remembered_unless_it_depends_on_what_is_edited(mode: PermissionMode, is_remembered: bool) -> None:
    state = PolicyState.of(mode=mode)

    decide(build_action("write_file", {"path": "x"}), state)

    (remembered,) = state.tool_policies.values()
    assert (remembered.verdict is not None) is is_remembered


@pytest.mark.parametrize("name", ["never_heard_of", "git__status", "mcp__files__read_file"])
def test_unknown_tools_and_tools_of_unknown_servers_are_high_danger(name: str) -> None:
    action = build_action(name, {})

    assert (action.danger, action.read_only) == (DangerLevel.HIGH, False)
    assert decide(action, PolicyState()).decision is Decision.ASK


def test_plan_mode_refuses_a_write_even_when_the_tool_is_on_the_allow_list() -> None:
    state = PolicyState.of(
        mode=PermissionMode.PLAN, allowed_tools=["write_file"], rules=[rule("allow", tool="write_file", priority=9)]
    )

    assert decide(build_action("write_file", {"path": "x"}), state) == Verdict(
        Decision.DENY, "plan", "Plan mode: Only read-only tools allowed"
    )


def test_plan_mode_lets_a_call_read_that_its_arguments_make_safe() -> None:
    state = PolicyState(mode=PermissionMode.PLAN)

    assert decide(build_action("http_request", {"method": "get", "url": "https://a"}), state).decision is Decision.ALLOW
    assert decide(build_action("http_request", {"method": "POST", "url": "https://a"}), state).decision is Decision.DENY
    assert (
        decide(build_action("http_request", {"method": "PURGE", "url": "https://a"}), state).decision is Decision.DENY
    )


def test_plan_mode_still_heeds_a_deny_of_a_tool_that_reads() -> None:
    state = PolicyState.of(mode=PermissionMode.PLAN, denied_tools=["read_file"])

    assert decide(build_action("Read", {}), state).decision is Decision.DENY


def test_the_floor_holds_in_bypass_mode() -> None:
    state = PolicyState.of(mode=PermissionMode.BYPASS, floor=protect(["/state"]), root="/work")

    assert decide(build_action("write_file", {"path": "/state/audit.db"}, root="/work"), state).layer == "floor"
    assert decide(build_action("write_file", {"path": "../state/audit.db"}, root="/work"), state).layer == "floor"
    assert decide(build_action("write_file", {"path": "a"}, root="/work"), state).layer == "bypass"


def test_the_floor_can_only_deny() -> None:
    with pytest.raises(ToolreeveError, match="only deny"):
        PolicyState.of(floor=[rule("allow")])


def test_a_refusal_by_budget_names_the_amounts_to_the_cent() -> None:
    state = PolicyState.of(budget=Budget(limit=10.0, spent=9.5))

    assert decide(build_action("read_file", {}, cost=1.0), state).reason == (
        "Budget exceeded: $9.50 spent, $0.50 remaining, tool needs $1.00"
    )
    assert decide(build_action("read_file", {}, cost=0.5), state).decision is Decision.ALLOW


def test_the_budget_is_looked_at_anew_with_every_call() -> None:
    money = Budget(limit=1.0)
    state = PolicyState.of(budget=money)
    assert decide(build_action("read_file", {}, cost=1.0), state).decision is Decision.ALLOW

    money.spent = 0.5

    assert decide(build_action("read_file", {}, cost=1.0), state).layer == "budget"


@pytest.mark.parametrize("cost", [float("inf"), 1e308])
def test_a_cost_that_is_no_amount_is_not_covered(cost: float) -> None:
    assert decide(build_action("read_file", {}, cost=cost), PolicyState.of(budget=Budget(limit=1e9))).layer == "budget"


def test_a_negative_cost_earns_nothing() -> None:
    assert not Budget(limit=1.0, spent=1.5).covers(-1.0)


@pytest.mark.parametrize(
    "entry", ["bash", "Bash", "bash_command", "mcp__toolreeve_builtin__bash", "ba*", "B?sh", "*_command"]
)
@pytest.mark.parametrize("called", ["bash", "Bash", "shell", "mcp__toolreeve_builtin__bash_command"])
def test_lists_match_every_name_of_a_tool_whatever_name_is_called(entry: str, called: str) -> None:
    denying = decide(build_action(called, {}), PolicyState.of(denied_tools=[entry]))
    allowing = decide(build_action(called, {}), PolicyState.of(allowed_tools=[entry]))

    assert denying == Verdict(Decision.DENY, "denied", f"Tool {called!r} is explicitly disallowed")
    assert allowing.decision is Decision.ALLOW


def test_a_pattern_takes_all_tools_of_a_server() -> None:
    state = PolicyState.of(denied_tools=["git__*"])

    assert decide(build_action("mcp__git__push", {}), state).decision is Decision.DENY
    assert decide(build_action("github__push", {}), state).decision is Decision.ASK


def test_denying_bash_denies_what_other_clients_call_their_shell() -> None:
    state = PolicyState.of(denied_tools=["bash"])

    assert decide(build_action("run_shell_command", {}), state).decision is Decision.DENY


def test_allowing_bash_does_not_allow_what_other_clients_call_their_shell() -> None:
    state = PolicyState.of(allowed_tools=["bash"])

    assert decide(build_action("run_shell_command", {}), state).decision is Decision.ASK


def test_a_deny_rule_is_not_outranked_by_an_allow_of_any_priority() -> None:
    state = PolicyState.of(
        allowed_tools=["bash"],
        rules=[rule("allow", tool="bash", priority=10**9), rule("deny", tool="bash", priority=-(10**9))],
    )

    assert decide(build_action("bash", {}), state).decision is Decision.DENY


def test_the_highest_priority_decides_and_ask_among_equals() -> None:
    asking, allowing = rule("ask", tool="read_file", id="asks"), rule("allow", tool="read_file", id="allows")
    louder = rule("allow", tool="read_file", id="louder", priority=1)

    assert decide(build_action("read_file", {}), PolicyState.of(rules=[allowing, asking])).rule == "asks"
    assert decide(build_action("read_file", {}), PolicyState.of(rules=[asking, louder])).rule == "louder"


def test_strict_mode_denies_high_danger_unless_a_rule_allows_it() -> None:
    strict = PolicyState.of(mode=PermissionMode.STRICT)
    asking = PolicyState.of(mode=PermissionMode.STRICT, rules=[rule("ask", tool="bash")])

    assert decide(build_action("bash", {}), strict).decision is Decision.DENY
    assert decide(build_action("bash", {}), asking).decision is Decision.ASK


def test_a_rule_that_may_only_tighten_never_loosens_what_strict_mode_denies() -> None:
    state = PolicyState.of(mode=PermissionMode.STRICT, rules=[rule("ask", tool="bash", tighten_only=True)])

    assert decide(build_action("bash", {}), state).decision is Decision.DENY


def test_a_rule_that_may_only_tighten_turns_an_allow_into_an_ask() -> None:
    project = rule("ask", tool="read_file", tighten_only=True, id="project")
    own = rule("allow", tool="read_file")

    assert decide(build_action("read_file", {}), PolicyState.of(rules=[project])).rule == "project"
    assert decide(build_action("read_file", {}), PolicyState.of(rules=[own, project])).rule == "project"


def test_a_rule_holds_until_it_expires() -> None:
    now = [99.0]
    state = PolicyState.of(rules=[rule("deny", tool="read_file", expires=100.0)], now=lambda: now[0])
    assert decide(build_action("read_file", {}), state).decision is Decision.DENY

    now[0] = 100.0

    assert decide(build_action("read_file", {}), state).decision is Decision.ALLOW


def test_a_rule_that_expires_needs_a_clock() -> None:
    with pytest.raises(ToolreeveError, match="clock"):
        PolicyState.of(rules=[rule("deny", expires=1.0)])


def test_a_tool_registered_anew_under_the_same_name_is_judged_anew() -> None:
    def offered(*, read_only: bool) -> Action:
        async def work() -> str:
            return ""

        template = build_action("work", {})
        made = bind(tool(name="work", danger=DangerLevel.LOW, read_only=read_only)(work))
        return Action(template.call, made, {}, template._files)

    state = PolicyState(mode=PermissionMode.PLAN)

    assert decide(offered(read_only=True), state).decision is Decision.ALLOW
    assert decide(offered(read_only=False), state).decision is Decision.DENY


def test_the_version_changes_with_every_part_of_the_policy() -> None:
    states = [
        PolicyState.of(),
        PolicyState.of(mode=PermissionMode.STRICT),
        PolicyState.of(allowed_tools=["a"]),
        PolicyState.of(denied_tools=["a"]),
        PolicyState.of(rules=[rule("ask", tool="a")]),
        PolicyState.of(rules=[rule("ask", tool="a", when={"x": {"equals": 1}})]),
        PolicyState.of(floor=[rule("deny", tool="a")]),
        PolicyState.of(budget=Budget(limit=1.0)),
    ]

    assert len({state.version for state in states}) == len(states)
    assert PolicyState.of(allowed_tools=["a", "b"]).version == PolicyState.of(allowed_tools=["b", "a"]).version


names = st.sampled_from(["read_file", "write_file", "bash", "Read", "Bash", "http_post", "x__y", "odd"])
patterns = st.sampled_from(["*", "read_file", "write_file", "bash", "Bash", "x__*", "odd", "http_*", "Read"])
conditions = st.sampled_from([{}, {"path": {"under": "src"}}, {"path": {"glob": "**/*.py"}}, {"n": {"max": 3}}])
written = st.builds(
    PermissionRule,
    decision=st.sampled_from(["allow", "ask", "deny"]),
    tool=patterns,
    when=conditions,
    effect=st.sampled_from([(), "read", "write", ("read", "write")]),
    priority=st.integers(-2, 2),
    min_danger=st.sampled_from([None, "low", "high"]),
    max_danger=st.sampled_from([None, "low", "high"]),
    tighten_only=st.booleans(),
)
policies = st.fixed_dictionaries(
    {
        "mode": st.sampled_from([mode for mode in PermissionMode if mode is not PermissionMode.BYPASS]),
        "allowed_tools": st.sets(patterns, max_size=2),
        "denied_tools": st.sets(patterns.filter(lambda pattern: pattern != "*"), max_size=1),
        "rules": st.lists(
            written.filter(lambda rule: not (rule.min_danger == "high" and rule.max_danger == "low")), max_size=5
        ),
    }
)
calls = st.builds(
    lambda name, args: build_action(name, args, root="/w"),
    names,
    st.sampled_from([{}, {"path": "src/a.py"}, {"path": "../x"}, {"path": 5}, {"path": "b.txt", "n": 2}, {"n": 9}]),
)


@given(calls, policies)
def test_the_same_question_gets_the_same_answer(action: Action, policy: dict[str, object]) -> None:
    one, other = PolicyState.of(root="/w", **policy), PolicyState.of(root="/w", **policy)  # type: ignore[arg-type]

    assert decide(action, one) == decide(action, one) == decide(action, other)


@given(
    calls, policies, written.filter(lambda rule: not (rule.min_danger == "high" and rule.max_danger == "low")), patterns
)
def test_adding_an_allow_never_turns_an_explicit_deny_into_an_allow(
    action: Action, policy: dict[str, object], added: PermissionRule, name: str
) -> None:
    before = decide(action, PolicyState.of(root="/w", **policy))  # type: ignore[arg-type]
    wider = policy | {
        "rules": [*policy["rules"], added, rule("allow", priority=99)],  # type: ignore[misc]
        "allowed_tools": {*policy["allowed_tools"], name, "*"},  # type: ignore[misc]
    }

    after = decide(action, PolicyState.of(root="/w", **wider))  # type: ignore[arg-type]

    assert after.decision is Decision.DENY or before.layer not in ("denied", "plan", "budget", "floor")


@given(calls, policies, written)
def test_adding_a_deny_only_ever_tightens(action: Action, policy: dict[str, object], added: PermissionRule) -> None:
    deny = rule("deny", tool=added.tool, when=added.when, effect=added.effect)
    before = decide(action, PolicyState.of(root="/w", **policy))  # type: ignore[arg-type]
    stricter = policy | {"rules": [*policy["rules"], deny]}  # type: ignore[misc]

    assert decide(action, PolicyState.of(root="/w", **stricter)).decision >= before.decision  # type: ignore[arg-type]


@given(calls, policies, written)
def test_a_tightening_rule_only_ever_tightens(action: Action, policy: dict[str, object], added: PermissionRule) -> None:
    ask = rule("ask", tool=added.tool, when=added.when, effect=added.effect, priority=added.priority, tighten_only=True)
    before = decide(action, PolicyState.of(root="/w", **policy))  # type: ignore[arg-type]
    stricter = policy | {"rules": [*policy["rules"], ask]}  # type: ignore[misc]

    assert decide(action, PolicyState.of(root="/w", **stricter)).decision >= before.decision  # type: ignore[arg-type]


def test_every_alias_is_decided_like_the_tool_it_names() -> None:
    for mode, alias in itertools.product(PermissionMode, ALIASES):
        state = PolicyState(mode=mode)
        assert (
            decide(build_action(alias, {}), state).decision
            is decide(build_action(canonical(alias), {}), state).decision
        )


def test_a_list_of_tools_says_nothing_about_others() -> None:
    call = build_action("bash", {"command": "frobnicate"})

    assert decide(call, PolicyState.of(allowed_tools=["read_file"])).decision is Decision.ASK
    assert decide(call, PolicyState.of(denied_tools=["read_file"])).decision is Decision.ASK
    assert decide(call, PolicyState.of(allowed_tools=["bash"])).layer == "allowed"
    assert decide(call, PolicyState.of(denied_tools=["bash"])).layer == "denied"


def test_an_allowed_tool_does_not_allow_another_that_does_the_same() -> None:
    """A deny is meant for all of them, an allow only for the one that is named."""
    for name in ("bash", "execute_command"):
        (other,) = {"bash", "execute_command"} - {name}
        args = {"command": "frobnicate"}

        assert decide(build_action(other, args), PolicyState.of(allowed_tools=[name])).layer != "allowed"


@pytest.mark.parametrize(("mode", "decision"), [("default", Decision.ASK), ("plan", Decision.DENY)])
def test_a_decision_by_mode_carries_the_tools_own_reason(mode: str, decision: Decision) -> None:
    call = build_action("bash", {"command": "cat .env"})
    verdict = decide(call, PolicyState(mode=PermissionMode(mode)))

    explained = with_rationale(verdict, call)

    assert explained.decision is decision
    assert explained.reason.startswith(f"{verdict.reason}: ")


def test_an_allow_and_a_decision_of_a_rule_keep_their_own_reason() -> None:
    call = build_action("bash", {"command": "cat .env"})
    ruled = decide(call, PolicyState.of(rules=[rule("deny", tool="bash", reason="no shell")]))
    allowed = decide(call, PolicyState.of(allowed_tools=["bash"]))

    assert with_rationale(ruled, call) == ruled
    assert with_rationale(allowed, call) == allowed
    free = decide(call, PolicyState(mode=PermissionMode.BYPASS))
    assert with_rationale(free, call) == free


@pytest.mark.parametrize(
    ("path", "decision"),
    [
        ("a.txt", "allow"),
        ("sub/../b", "allow"),
        ("../a", "ask"),
        ("/etc/a", "ask"),
        (".env", "ask"),
        (".git/config", "ask"),
    ],
)
def test_accept_edits_accepts_changes_of_unprotected_files_of_the_workspace(path: str, decision: str) -> None:
    state = PolicyState.of(mode=PermissionMode.ACCEPT_EDITS, root="/ws")

    for name in ("write_file", "edit_file"):
        assert decide(build_action(name, {"path": path, "content": "x"}, root="/ws"), state).decision.word == decision
    moved = build_action("move_file", {"source": "a", "destination": path}, root="/ws")
    assert decide(moved, state).decision.word == decision
    assert decide(build_action("delete_file", {"path": path}, root="/ws"), state).decision.word == "ask"
