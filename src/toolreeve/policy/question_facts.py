"""Facts that a question shows beside a call's arguments and effects."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.effects import Effect
from toolreeve.policy.shell.analysis import Analysis, analyse_script, analysis_of
from toolreeve.policy.shell.parse.syntax import Group, Negated, Node, Redirected, ShellPipeline, ShellScript, Step

_MOST = 50


def describe_parts(action: Action) -> Mapping[str, Any]:
    """The simple commands of a command: what runs, whether it is known, why not, how it is joined, its effects."""
    analysis = analysis_of(action)
    if analysis is None:
        return {}
    parts = [_part(node, joined, analysis) for node, joined in _leaves(analysis.script, "")]
    return {"parts": parts[:_MOST]} if parts else {"parts": _flat(analysis)}


def _leaves(script: ShellScript, joined: str) -> Iterator[tuple[Node, str]]:
    """Each command that is no list or pipeline, with the operator before it."""
    for step in script.steps:
        yield from _node(step.node, joined)
        joined = step.operator


def _node(node: Node, joined: str) -> Iterator[tuple[Node, str]]:
    match node:
        case ShellScript():
            yield from _leaves(node, joined)
        case ShellPipeline(stages=stages):
            for stage in stages:
                yield from _node(stage, joined)
                joined = "|"
        case Group(body=body) | Negated(body=body):
            yield from _node(body, joined)
        case Redirected(redirects=()):
            yield from _node(node.body, joined)
        case _:
            yield node, joined


def _part(node: Node, joined: str, whole: Analysis) -> dict[str, Any]:
    alone = analyse_script(ShellScript((Step(node, ""),)), whole)
    unknown = [part for part in alone.parts if not part.known]
    argv = next((part.argv for part in alone.parts if part.argv), ())
    return {
        "argv": list(argv) or [str(getattr(node, "source", ""))],
        "known": not unknown,
        "why": "; ".join(dict.fromkeys(part.why for part in unknown)),
        "joined": joined,
        "effects": [_effect(effect) for effect in alone.effects[:_MOST]],
    }


def _flat(analysis: Analysis) -> list[dict[str, Any]]:
    """Of a command that could not be parsed."""
    return [
        {"argv": list(part.argv), "known": part.known, "why": part.why, "joined": "", "effects": []}
        for part in analysis.parts[:_MOST]
    ]


def _effect(effect: Effect) -> dict[str, str]:
    return {"kind": effect.kind.value, "target": effect.target, "reach": effect.reach.value}
