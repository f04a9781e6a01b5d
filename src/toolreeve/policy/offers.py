"""Wider approvals that a question may offer, narrowest first.

Pure. Nothing is offered for a command that cannot be read word by word, or whose effect cannot be undone. Each rule is
checked to cover the very call that it is offered for.
"""

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind
from toolreeve.core.errors import ToolreeveError
from toolreeve.policy.layers import ruled
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import PolicyState

_CHANGES = frozenset((EffectKind.WRITE, EffectKind.DELETE))
_EDITORS = ("write_file", "edit_file")
_MOST_PROGRAMS = 3
_WILD = frozenset("*?[")


class Offer(NamedTuple):
    """`rule` is as a policy file writes it, without the user and the reason."""

    sentence: str
    rule: Mapping[str, Any]


def find_offers(action: Action, state: PolicyState) -> Sequence[Offer]:
    if action.danger is DangerLevel.CRITICAL:
        return ()
    found = (_offer_programs(action), _offer_folder(action, state))
    return [offer for offer in found if offer is not None and covers(offer.rule, action, state)]


def covers(rule: Mapping[str, Any], action: Action, state: PolicyState) -> bool:
    """Whether the rule alone decides about the call: an allow must be proved, an ask only suspects. A rule for confined
    commands covers what a trial changed, no more."""
    if rule.get("confined") and not action.tried:
        return False
    try:
        alone = PolicyState.of(
            rules=[PermissionRule(**rule)],
            root=state.writable[0],
            writable=state.writable[1:],
            confinements=state.confinements,
            now=state.now,
        )
    except ToolreeveError:
        return False
    verdict = ruled(action, alone.narrowed(action))
    return verdict is not None and verdict.decision.word == rule["decision"]


def _offer_programs(action: Action) -> Offer | None:
    """The programs and subcommands of the command, with any words."""
    from toolreeve.policy.shell.analysis import analysis_of
    from toolreeve.policy.shell.simple_commands import simple_commands

    found = analysis_of(action)
    if found is None:
        return None
    named = [_named_words(each.chain) for each in simple_commands(found) if not each.reads]
    programs = list(dict.fromkeys(" ".join(words) for words in named if words))
    if not named or not all(named) or len(programs) > _MOST_PROGRAMS:
        return None
    listed = " and ".join(f"`{each} …`" for each in programs)
    rule = _rule(action) | {"program": programs}
    if action.tried:
        sentence = f"{listed} with any words, confined: keep what it changes in the workspace"
        return Offer(sentence, rule | {"confined": "try"})
    return Offer(f"{listed} with any words, not confined", rule)


def _named_words(chain: Sequence[Any]) -> tuple[str, ...]:
    """The words that name what runs; empty if they do not, or not plainly."""
    from toolreeve.policy.shell.programs.subcommands import find_subcommand

    link = next((each for each in chain if not each.known), chain[-1] if chain else None)
    if link is None or not link.explained:
        return ()
    inner = chain[-1]
    _, count = find_subcommand(inner.program, inner.words)
    words: tuple[str, ...] = link.words[: len(link.words) - len(inner.words) + count] if count else ()
    plain = all(word and not word.startswith("…") and _WILD.isdisjoint(word) and not word.isspace() for word in words)
    return words if plain and not any(" " in word for word in words) else ()


def _offer_folder(action: Action, state: PolicyState) -> Offer | None:
    """Changes below the folder that holds all that the call changes."""
    changed = [effect for effect in action.effects if effect.kind in _CHANGES]
    root = state.writable[0]
    if not changed or not (action.tried or action.spec.undoable):
        return None
    folder = posixpath.commonpath([posixpath.dirname(effect.target) for effect in changed])
    if not folder.startswith(root.rstrip("/") + "/"):
        return None
    kinds = sorted({str(effect.kind) for effect in changed})
    doing = "changes and deletions" if len(kinds) == 2 else {"write": "changes", "delete": "deletions"}[kinds[0]]
    below = posixpath.relpath(folder, root)
    rule = _rule(action) | {"effect": kinds, "target": {"under": [folder]}}
    if action.spec.name in _EDITORS:
        rule["tool"] = list(_EDITORS)
    return Offer(f"{doing} below {below}/", rule)


def _rule(action: Action) -> dict[str, Any]:
    return {"tool": action.spec.name, "decision": "allow", "max_danger": action.danger.value}
