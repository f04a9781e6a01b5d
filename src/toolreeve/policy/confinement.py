"""Confinement of a call: how its programs run, from the verdict and effects.

Pure. What is allowed because it only reads runs where it can only read, so a wrong belief about a program has no
effect. What a person or a rule allowed beforehand runs as it was allowed.
"""

from dataclasses import replace

from toolreeve.core.action import Action
from toolreeve.core.call import Role
from toolreeve.core.context import UNBOUND, ProgramBounds
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind
from toolreeve.core.errors import ToolError
from toolreeve.core.trial import Confinement
from toolreeve.core.urls import parse_host
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.state import PolicyState

_CONTACTS = frozenset((EffectKind.NET, EffectKind.SEND))


def confine(verdict: Verdict, action: Action, state: PolicyState) -> Verdict:
    """The verdict with the confinement that the call runs in."""
    if verdict.decision is Decision.ALLOW and _is_reading(verdict, action, state):
        return replace(verdict, runs=Confinement.LOOK)
    return verdict


def _is_reading(verdict: Verdict, action: Action, state: PolicyState) -> bool:
    if state.mode is PermissionMode.BYPASS:
        return False
    if state.mode is PermissionMode.PLAN or action.call.principal.role is Role.VIEWER:
        return True
    return verdict.layer == "default" and action.danger <= DangerLevel.LOW


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
    contacted = [effect.target for effect in action.effects if effect.kind in _CONTACTS]
    hosts = [_host(target) for target in contacted]
    return None if None in hosts else frozenset(host for host in hosts if host)


def _host(target: str) -> str | None:
    if "." not in target and target != "localhost":
        return None
    try:
        return parse_host(target)[0]
    except ToolError:
        return None
