"""Rendering of an analysis: one JSON object, or a tree for terminals."""

from typing import TYPE_CHECKING, Any, NamedTuple

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.shell.analysis import Analysis, analysis_of
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import decide_trial, foresee

if TYPE_CHECKING:
    from rich.tree import Tree

_COLOURS = {
    DangerLevel.SAFE: "green",
    DangerLevel.LOW: "green",
    DangerLevel.MEDIUM: "yellow",
    DangerLevel.HIGH: "red",
    DangerLevel.CRITICAL: "bold red",
}
_RUNS = {
    Confinement.LOOK: "confined to reading (look)",
    Confinement.TRY: "on trial, in a layer over the workspace and without network (try)",
    Confinement.WORK: "as it is allowed (work)",
}
_BY_MODE = frozenset(("default", "plan", "trial", "bypass"))
_MARKS = {"allow": "[green]✓[/green]", "ask": "[yellow]?[/yellow]", "deny": "[red]✗[/red]"}


class Outlook(NamedTuple):
    """What becomes of a command under a policy. `asks_after` says when a person is asked about what a trial changed."""

    analysis: Analysis
    decision: Decision
    runs: Confinement
    asks_after: str
    reason: str


def foresee_command(
    command: str, *, cwd: str, home: str, root: str, state: PolicyState | None = None, allowed: tuple[str, ...] = ()
) -> Outlook:
    """Without a state: in default mode, where nothing confines the command."""
    state = PolicyState.of(root=root) if state is None else state
    args = {"command": command, "working_dir": cwd}
    action = build_action("bash", args, root=root, home=home, allowed=allowed, origin="cli")
    verdict = decide_trial(action, decide(action, state), state)
    decision, asks_after = foresee(action, verdict, state)
    found = analysis_of(action)
    if found is None:
        raise ToolreeveError(f"the command cannot be analysed: {command!r}")
    reason = found.reason if verdict.layer in _BY_MODE else verdict.reason
    return Outlook(found, decision, verdict.runs, asks_after, reason)


def explain(command: str, **place: Any) -> dict[str, Any]:
    """The line that `toolreeve explain command` prints; the keywords are those of `foresee_command`."""
    outlook = foresee_command(command, **place)
    analysis = outlook.analysis
    return {
        "value": command,
        "decision": outlook.decision.word,
        "runs": outlook.runs.value,
        "asks_after": outlook.asks_after,
        "danger": analysis.danger.value,
        "known": analysis.known,
        "parts": [_part_to_dict(part.argv, part.why) for part in analysis.parts],
        "effects": [
            {"kind": effect.kind.value, "target": effect.target, "reach": effect.reach.value}
            for effect in analysis.effects
        ],
        "reason": outlook.reason,
    }


def _part_to_dict(argv: tuple[str, ...], why: str) -> dict[str, Any]:
    part: dict[str, Any] = {"argv": list(argv), "known": not why}
    if why:
        part["why"] = why
    return part


def tree(command: str, **place: Any) -> "Tree":
    """A tree for terminals: the verdict, each command, and the effects."""
    from rich.markup import escape
    from rich.tree import Tree

    outlook = foresee_command(command, **place)
    analysis = outlook.analysis
    colour = _COLOURS[analysis.danger]
    shown = Tree(f"{_MARKS[outlook.decision.word]} [bold]{escape(visible(command))}[/bold]")
    word = outlook.decision.word
    shown.add(f"[{colour}]{word}[/{colour}], {analysis.danger.value}: {escape(visible(outlook.reason))}")
    shown.add(f"runs: {_RUNS[outlook.runs]}; asks afterwards: {escape(visible(outlook.asks_after))}")
    for part in analysis.parts:
        mark = "[green]known[/green]" if part.known else f"[red]not known[/red]: {escape(visible(part.why))}"
        shown.add(f"{escape(visible(' '.join(part.argv)))}  {mark}")
    _add_effects(analysis, shown)
    return shown


def _add_effects(analysis: Analysis, shown: "Tree") -> None:
    from rich.markup import escape

    touching = [effect for effect in analysis.effects if effect.kind is not EffectKind.EXEC]
    if not touching:
        return
    branch = shown.add("[dim]effects[/dim]")
    for effect in touching:
        reach = "" if effect.reach is Reach.EXACT else f" [dim]({effect.reach.value})[/dim]"
        branch.add(f"{effect.kind.value} {escape(visible(effect.target))}{reach}")


def visible(text: str) -> str:
    """The text with control and invisible characters escaped, so that nothing hides on a terminal."""
    return "".join(char if char.isprintable() else f"‹U+{ord(char):04X}›" for char in text)
