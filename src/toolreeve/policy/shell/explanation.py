"""Rendering of an analysis: one JSON object, or a tree for terminals."""

from typing import TYPE_CHECKING, Any

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.analysis import Analysis, analyse, decide_default

if TYPE_CHECKING:
    from rich.tree import Tree

_COLOURS = {
    DangerLevel.SAFE: "green",
    DangerLevel.LOW: "green",
    DangerLevel.MEDIUM: "yellow",
    DangerLevel.HIGH: "red",
    DangerLevel.CRITICAL: "bold red",
}
_MARKS = {"allow": "[green]✓[/green]", "ask": "[yellow]?[/yellow]", "deny": "[red]✗[/red]"}


def explain(command: str, *, cwd: str, home: str, root: str) -> dict[str, Any]:
    """The line that `toolreeve explain command` prints."""
    analysis = analyse(command, cwd=cwd, home=home, root=root)
    verdict = decide_default(analysis)
    return {
        "value": command,
        "decision": verdict.decision.word,
        "danger": analysis.danger.value,
        "known": analysis.known,
        "parts": [_part_to_dict(part.argv, part.why) for part in analysis.parts],
        "effects": [
            {"kind": effect.kind.value, "target": effect.target, "reach": effect.reach.value}
            for effect in analysis.effects
        ],
        "reason": verdict.reason,
    }


def _part_to_dict(argv: tuple[str, ...], why: str) -> dict[str, Any]:
    part: dict[str, Any] = {"argv": list(argv), "known": not why}
    if why:
        part["why"] = why
    return part


def tree(command: str, *, cwd: str, home: str, root: str) -> "Tree":
    """A tree for terminals: the verdict, each command, and the effects."""
    from rich.markup import escape
    from rich.tree import Tree

    analysis = analyse(command, cwd=cwd, home=home, root=root)
    verdict = decide_default(analysis)
    colour = _COLOURS[analysis.danger]
    shown = Tree(f"{_MARKS[verdict.decision.word]} [bold]{escape(visible(command))}[/bold]")
    shown.add(
        f"[{colour}]{verdict.decision.word}[/{colour}], {analysis.danger.value}: {escape(visible(verdict.reason))}"
    )
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
