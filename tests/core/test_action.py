from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.tool import BoundTool, ToolSpec


class Place:
    def __init__(self, root: str) -> None:
        self.root = root


async def run(*_: object) -> Output:
    return Output(data={})


def leads_to_root(_: object, files: Files) -> list[Effect]:
    return [Effect(EffectKind.READ, files.root)]


def action(*, trusted: bool, danger: DangerLevel = DangerLevel.SAFE, place: Place | None = None) -> Action:
    spec = ToolSpec(name="t", description="", input={}, danger=danger, read_only=True, trusted=trusted)
    tool = BoundTool(spec=spec, run=run, input=Schema({}), list_effects=leads_to_root)
    return Action(ToolCall(tool="t", args={}), tool, {}, place or Place("/w"))  # type: ignore[arg-type]


def test_the_claims_of_an_untrusted_server_lower_nothing() -> None:
    claimed = action(trusted=False)

    assert (claimed.danger, claimed.read_only) == (DangerLevel.HIGH, False)
    assert action(trusted=False, danger=DangerLevel.CRITICAL).danger is DangerLevel.CRITICAL


def test_the_claims_of_a_trusted_tool_count() -> None:
    claimed = action(trusted=True)

    assert (claimed.danger, claimed.read_only) == (DangerLevel.SAFE, True)


async def test_effects_are_computed_once_and_again_only_for_a_new_look() -> None:
    place = Place("/before")
    seen = action(trusted=True, place=place)
    assert seen.effects == [Effect(EffectKind.READ, "/before")]

    place.root = "/after"

    assert seen.effects == [Effect(EffectKind.READ, "/before")]
    again = await seen.again()
    assert again.effects == [Effect(EffectKind.READ, "/after")]


def test_what_was_opened_is_recorded_instead_of_a_second_look() -> None:
    place = Place("/w")
    read = action(trusted=True, place=place)

    read.observe([Effect(EffectKind.READ, "/w/opened")])
    place.root = "/redirected"

    assert read.recorded_effects == [Effect(EffectKind.READ, "/w/opened")]


def test_effects_that_were_decided_upon_stay_on_record() -> None:
    decided = action(trusted=True)
    predicted = decided.effects

    decided.observe([])

    assert decided.recorded_effects == predicted == [Effect(EffectKind.READ, "/w")]
