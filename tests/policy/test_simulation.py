from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.call import LOCAL
from toolreeve.core.verdict import Decision
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.simulation import PastCall, Simulator
from toolreeve.policy.state import PolicyState

ROOT = "/work"


def past(tool: str, **args: Any) -> PastCall:
    return PastCall(id="c", tool=tool, args=args, principal=LOCAL, session="s", origin="cli")


def simulator(*new: PermissionRule, present: tuple[PermissionRule, ...] = ()) -> Simulator:
    return Simulator(PolicyState.of(rules=present, root=ROOT), PolicyState.of(rules=new, root=ROOT), root=ROOT)


def test_the_same_policy_changes_nothing() -> None:
    rule = PermissionRule(tool="bash", program="git", decision="ask")

    found = simulator(rule, present=(rule,)).run([past("bash", command="git status"), past("read_file", path="a")])

    assert (found.total, found.changed) == (2, [])
    assert found.prompts_before == found.prompts_after == 1


def test_changes_are_counted_by_kind_and_listed() -> None:
    calls = [past("read_file", path="a"), past("read_file", path="b"), past("write_file", path="a"), None]

    found = simulator(
        PermissionRule(id="r", tool="read_file", when={"path": {"glob": "a"}}, decision="deny"),
        PermissionRule(id="w", tool="write_file", decision="allow"),
    ).run(calls)

    assert dict(found.by) == {("allow", "deny"): 1, ("ask", "allow"): 1}
    assert [(each.call.args["path"], each.after.rule) for each in found.changed] == [("a", "r"), ("a", "w")]
    assert (found.total, found.left_out, found.prompts_before, found.prompts_after) == (3, 1, 1, 0)


def test_rules_on_sessions_are_told_apart() -> None:
    one, two = (
        PastCall(id=name, tool="read_file", args={"path": "a"}, principal=LOCAL, session=name, origin="cli")
        for name in ("one", "two")
    )

    found = simulator(PermissionRule(tool="read_file", session="one", decision="deny")).run([one, two, one])

    assert [each.call.id for each in found.changed] == ["one", "one"]


def test_a_record_that_was_cut_or_redacted_is_not_replayed() -> None:
    body = {"tool": "bash", "role": "operator", "user": "local", "session": "s", "origin": "mcp"}

    assert PastCall.from_record("c", body | {"args": {"command": "ls"}}) is not None
    unusable: list[Any] = [{"command": "x [redacted]"}, {"command": {"cut": "a", "length": 9, "sha256": "0"}}, None, []]
    for args in unusable:
        assert PastCall.from_record("c", body | {"args": args}) is None
    assert PastCall.from_record("c", body | {"args": {}, "role": "emperor"}) is None


TOOLS = st.sampled_from(["read_file", "write_file", "bash", "delete_file", "fetch_url", "github__push", "unknown"])
VALUES = st.sampled_from(["a", ".env", "/etc/passwd", "git push", "rm -rf /", "$(curl x)", "http://10.0.0.1/", ""])
CALLS = st.builds(
    lambda tool, value: past(
        tool, **{"command" if tool == "bash" else "url" if tool == "fetch_url" else "path": value}
    ),
    TOOLS,
    VALUES,
)
RULES = st.builds(
    PermissionRule,
    tool=st.one_of(TOOLS, st.just("*")),
    decision=st.sampled_from(["allow", "ask", "deny"]),
    priority=st.integers(-2, 2),
    enforce=st.booleans(),
)


@given(st.lists(RULES, max_size=4), TOOLS, CALLS)
def test_adding_an_allow_never_loosens_a_deny(rules: list[PermissionRule], tool: str, call: PastCall) -> None:
    more = [*rules, PermissionRule(tool=tool, decision="allow", priority=9)]

    found = simulator(*more, present=tuple(rules)).run([call])

    assert all(each.before.decision is not Decision.DENY for each in found.changed)


@given(st.lists(RULES, max_size=4), CALLS)
def test_what_is_not_enforced_changes_no_decision(rules: list[PermissionRule], call: PastCall) -> None:
    enforced = tuple(rule for rule in rules if rule.enforce)

    assert simulator(*rules, present=enforced).run([call]).changed == []
