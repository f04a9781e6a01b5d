"""Bounds of a call's programs, from its confinement and its effects.

Pure. A call that was allowed to read contacts exactly the hosts that it was allowed for.
"""

from toolreeve.core.action import Action
from toolreeve.core.context import UNBOUND, ProgramBounds
from toolreeve.core.effects import CONTACTS
from toolreeve.core.errors import ToolError
from toolreeve.core.trial import Confinement
from toolreeve.core.urls import parse_host


def bounds_of(runs: Confinement, action: Action) -> ProgramBounds:
    """What the programs of a call are bound to. A tool that tells nothing of its effects contacts what it requests."""
    match runs:
        case Confinement.WORK:
            return UNBOUND
        case Confinement.TRY:
            return ProgramBounds(confinement=Confinement.TRY, hosts=frozenset())
        case Confinement.LOOK if action.tool.list_effects is None:
            return ProgramBounds(confinement=Confinement.LOOK)
        case Confinement.LOOK:
            return ProgramBounds(confinement=Confinement.LOOK, hosts=_hosts(action))


def _hosts(action: Action) -> frozenset[str] | None:
    """None where an effect names no host, but for example the registry of a package manager."""
    contacted = [effect.target for effect in action.effects if effect.kind in CONTACTS]
    hosts = [_host(target) for target in contacted]
    return None if None in hosts else frozenset(host for host in hosts if host)


def _host(target: str) -> str | None:
    if "." not in target and target != "localhost":
        return None
    try:
        return parse_host(target)[0]
    except ToolError:
        return None
