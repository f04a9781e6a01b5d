from collections.abc import Sequence
from typing import Any, cast

import pytest

from toolreeve.core.action import Action
from toolreeve.core.call import LOCAL, Principal, Role, ToolCall
from toolreeve.core.context import Context, ProgramBounds
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.confinement import bounds_of, confine
from toolreeve.policy.layers import decide
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import PolicyState

ROOT = "/work"
VIEWER = Principal(role=Role.VIEWER)


class _Workspace:
    root = ROOT


async def _run(_: dict[str, Any], __: Context) -> Output:
    raise AssertionError("only decided about")


def program(
    danger: DangerLevel = DangerLevel.SAFE, effects: Sequence[Effect] | None = (), principal: Principal = LOCAL
) -> Action:
    spec = ToolSpec(name="program", description="", input={"type": "object"})
    tool = BoundTool(
        spec=spec,
        run=_run,
        input=Schema(spec.input),
        assess=lambda _: danger,
        list_effects=None if effects is None else lambda _, __: effects,
    )
    return Action(ToolCall(tool="program", args={}, principal=principal), tool, {}, cast(Files, _Workspace()))


def runs(action: Action, **policy: Any) -> Confinement:
    state = PolicyState.of(**policy)
    return confine(decide(action, state), action, state).runs


@pytest.mark.parametrize("mode", [PermissionMode.DEFAULT, PermissionMode.PLAN])
def test_what_is_allowed_because_it_only_reads_can_only_read(mode: PermissionMode) -> None:
    assert runs(program(), mode=mode) is Confinement.LOOK


def test_files_that_a_program_keeps_for_itself_are_no_reason_to_let_it_write() -> None:
    cache = Effect(EffectKind.WRITE, "/work/.ruff_cache", Reach.BELOW)

    assert runs(program(DangerLevel.LOW, [cache])) is Confinement.LOOK


def test_what_a_rule_or_the_operator_allowed_runs_as_it_was_allowed() -> None:
    rule = PermissionRule(id="all", decision=Decision.ALLOW, tool=("program",))

    assert runs(program(), rules=[rule]) is Confinement.WORK
    assert runs(program(), allowed_tools={"program"}) is Confinement.WORK
    assert runs(program(), mode=PermissionMode.BYPASS) is Confinement.WORK


def test_plan_mode_and_a_viewer_can_only_read_whatever_a_rule_allows() -> None:
    assert runs(program(), mode=PermissionMode.PLAN, allowed_tools={"program"}) is Confinement.LOOK
    assert runs(program(DangerLevel.HIGH, principal=VIEWER), allowed_tools={"program"}) is Confinement.LOOK


@pytest.mark.parametrize(
    ("contacted", "hosts"),
    [
        ([], frozenset()),
        (["Example.com", "127.0.0.1"], frozenset(("example.com", "127.0.0.1"))),
        (["example.com", "git remote"], None),
        (["*"], None),
        (["kubernetes"], None),
    ],
)
def test_reading_contacts_exactly_the_hosts_that_the_effects_name(
    contacted: list[str], hosts: frozenset[str] | None
) -> None:
    action = program(effects=[Effect(EffectKind.NET, host) for host in contacted])

    assert bounds_of(Confinement.LOOK, action) == ProgramBounds(confinement=Confinement.LOOK, hosts=hosts)


def test_a_trial_has_no_network_and_work_has_what_its_tool_requests() -> None:
    action = program(effects=[Effect(EffectKind.NET, "example.com")])

    assert bounds_of(Confinement.TRY, action) == ProgramBounds(confinement=Confinement.TRY, hosts=frozenset())
    assert bounds_of(Confinement.WORK, action) == ProgramBounds()


def test_a_tool_that_tells_nothing_of_its_effects_keeps_its_network() -> None:
    assert bounds_of(Confinement.LOOK, program(effects=None)) == ProgramBounds(confinement=Confinement.LOOK)


def test_a_question_is_not_confined_before_it_is_answered() -> None:
    asked = Verdict(Decision.ASK, "default")

    assert confine(asked, program(DangerLevel.HIGH, [Effect(EffectKind.NET, "x.org")]), PolicyState.of()) == asked
