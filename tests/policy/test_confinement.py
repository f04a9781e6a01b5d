from collections.abc import Sequence
from typing import Any, cast

import pytest

from toolreeve.core.action import Action
from toolreeve.core.call import LOCAL, Principal, Role, ToolCall
from toolreeve.core.context import Context, ProgramBounds
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.core.trial import Confinement
from toolreeve.policy.confinement import bounds_of

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


def test_a_tool_without_declared_effects_keeps_its_network() -> None:
    assert bounds_of(Confinement.LOOK, program(effects=None)) == ProgramBounds(confinement=Confinement.LOOK)
