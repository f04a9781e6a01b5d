"""Session grants: approvals that cover the same call again, and nothing wider.

The same call is: the same tool with the same definition and danger, in the same session, for the same principal, under
the same policy, and
- for a call that only touches files: the same effects on the same resolved paths (the content may differ);
- for any other call: exactly the same arguments.
Grants live in memory and end with the process.
"""

from collections import OrderedDict
from typing import Any

from toolreeve.approval.request import definition, fingerprint
from toolreeve.core.action import Action
from toolreeve.core.effects import EffectKind

MAX_GRANTS = 10_000
_FILE_EFFECTS = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))


def only_touches_files(action: Action) -> bool:
    return bool(action.effects) and all(effect.kind in _FILE_EFFECTS for effect in action.effects)


class Grants:
    """Maps each granted call to the user who granted it. Beyond `MAX_GRANTS` the oldest is dropped."""

    def __init__(self) -> None:
        self._by: OrderedDict[str, str] = OrderedDict()

    def add(self, action: Action, *, version: str, by: str) -> None:
        self._by[_key(action, version)] = by
        if len(self._by) > MAX_GRANTS:
            self._by.popitem(last=False)

    def find(self, action: Action, *, version: str) -> str | None:
        """The user who granted it, or None."""
        return self._by.get(_key(action, version)) if self._by else None

    def forget(self) -> None:
        self._by.clear()


def _key(action: Action, version: str) -> str:
    call = action.call
    if only_touches_files(action):
        subject: Any = sorted(f"{effect} {effect.reach}" for effect in action.effects)
    else:
        subject = action.args
    return fingerprint(
        definition(action.spec),
        action.danger.value,
        call.session,
        call.principal.user,
        call.principal.role.value,
        version,
        subject,
    )
