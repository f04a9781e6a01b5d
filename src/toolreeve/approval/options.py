"""Permission options of agents: their ids and kinds, read and chosen.

Pure. A `kind` outranks an id. A rejection that finds no option to reject with cancels; it never falls back to an allow.
An allow for once never chooses an option that allows for always.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class OptionKind(StrEnum):
    """As ACP names them."""

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"

    @property
    def allows(self) -> bool:
        return self in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS)


IDS: Mapping[str, OptionKind] = {
    "allow": OptionKind.ALLOW_ONCE,
    "allow_once": OptionKind.ALLOW_ONCE,
    "allow-once": OptionKind.ALLOW_ONCE,
    "approve": OptionKind.ALLOW_ONCE,
    "approved": OptionKind.ALLOW_ONCE,
    "proceed_once": OptionKind.ALLOW_ONCE,
    "yes": OptionKind.ALLOW_ONCE,
    "allow_always": OptionKind.ALLOW_ALWAYS,
    "allow-always": OptionKind.ALLOW_ALWAYS,
    "approved_for_session": OptionKind.ALLOW_ALWAYS,
    "approved-for-session": OptionKind.ALLOW_ALWAYS,
    "proceed_always": OptionKind.ALLOW_ALWAYS,
    "proceed_always_server": OptionKind.ALLOW_ALWAYS,
    "proceed_always_tool": OptionKind.ALLOW_ALWAYS,
    "abort": OptionKind.REJECT_ONCE,
    "cancel": OptionKind.REJECT_ONCE,
    "deny": OptionKind.REJECT_ONCE,
    "denied": OptionKind.REJECT_ONCE,
    "no": OptionKind.REJECT_ONCE,
    "reject": OptionKind.REJECT_ONCE,
    "reject_once": OptionKind.REJECT_ONCE,
    "reject-once": OptionKind.REJECT_ONCE,
    "rejected": OptionKind.REJECT_ONCE,
    "reject_always": OptionKind.REJECT_ALWAYS,
    "reject-always": OptionKind.REJECT_ALWAYS,
}
"""The ids that agents use, when they say no kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionOption:
    """`kind` is None if neither the agent nor its id says what it means: such an option is never chosen."""

    id: str
    kind: OptionKind | None
    name: str = ""


def read_option(option: Mapping[str, Any]) -> PermissionOption:
    """An option as an agent sends it: `{optionId, kind?, name?}`. An unknown kind is not guessed from the id."""
    number = str(option.get("optionId", option.get("id", "")))
    kind = option.get("kind")
    if kind is None:
        return PermissionOption(id=number, kind=kind_of_id(number), name=str(option.get("name", "")))
    known = OptionKind(kind) if kind in set(OptionKind) else None
    return PermissionOption(id=number, kind=known, name=str(option.get("name", "")))


def kind_of_id(number: str) -> OptionKind | None:
    return IDS.get(number.strip().lower())


def choose_option(
    options: Sequence[PermissionOption], *, granted: bool, always: bool = False, preferred: str = ""
) -> str | None:
    """The id to answer with; None means to cancel. `preferred` is used if it was offered and means the same, by itself
    or as another spelling. An id that several options have says nothing."""
    wanted = _wanted(granted=granted, always=always)
    ids = [option.id for option in options]
    fitting = [option for option in options if option.kind in wanted and option.id and ids.count(option.id) == 1]
    for option in fitting:
        if option.id == preferred:
            return option.id
    ranked = sorted(fitting, key=lambda option: wanted.index(option.kind) if option.kind else len(wanted))
    return ranked[0].id if ranked else None


def _wanted(*, granted: bool, always: bool) -> tuple[OptionKind, ...]:
    """What may be chosen, the best first. What holds longer than it was meant to is never chosen for an allow."""
    if granted:
        return (OptionKind.ALLOW_ALWAYS, OptionKind.ALLOW_ONCE) if always else (OptionKind.ALLOW_ONCE,)
    return (OptionKind.REJECT_ALWAYS, OptionKind.REJECT_ONCE) if always else (OptionKind.REJECT_ONCE,)


def outcome_of(option: str | None) -> dict[str, Any]:
    """The outcome of `session/request_permission`."""
    return {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
