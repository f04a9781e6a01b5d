"""Bounds of a call's programs, from its confinement and its effects.

Pure. A call that was allowed to read contacts exactly the hosts that it was allowed for.
"""

from toolreeve.core.action import Action
from toolreeve.core.context import UNBOUND, ProgramBounds
from toolreeve.core.effects import CONTACTS
from toolreeve.core.errors import ToolError
from toolreeve.core.toolset import is_builtin
from toolreeve.core.trial import Confinement
from toolreeve.core.urls import parse_host
from toolreeve.policy.state import PolicyState


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


def hides_history(action: Action, state: PolicyState) -> bool:
    """Whether the call's programs see nothing of what git stores: that is also what rules keep from being read, without
    its name. A command of git that is known was judged by the files that it prints."""
    if not state.hidden:
        return False
    from toolreeve.policy.shell.analysis import analysis_of

    found = analysis_of(action)
    if found is None:
        return not (action.read_only and is_builtin(action.spec))
    return not found.known or all(part.program != "git" for part in found.parts)


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
