"""Danger of a command: its worst effect, alarm or unknown part.

SAFE runs without approval, so it is only for commands that are fully known, change nothing, and read no secrets.
"""

import ipaddress
import re
from collections.abc import Sequence

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.guarded_paths import is_named
from toolreeve.policy.shell.interpret.findings import Findings
from toolreeve.policy.shell.interpret.paths import (
    any_secret,
    is_home_secret,
    is_secret,
    is_under,
    may_match_secret,
    secrets_below,
)

_HISTORY = frozenset((".git", ".hg", ".svn"))
_SYSTEM_ROOTS = frozenset(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /srv /sys /usr /var /mnt /media /Users /System "
    "/Library".split()
)
_HOME = re.compile(r"/(?:home|Users|mnt|media|Volumes)/[^/]+")
"""A home directory, or a mounted disk."""
_PAST = re.compile(
    r"/(?:\.git(?:/(?:objects|refs|logs|modules)(?:/.*)?)?|\.hg(?:/store(?:/.*)?)?|\.svn(?:/.*)?)\Z", re.DOTALL
)
_PRIVATE = frozenset(("localhost", "ip6-localhost", "ip6-loopback", "metadata"))
Risk = tuple[DangerLevel, str]
_SAFE: Risk = (DangerLevel.SAFE, "")


def assess(findings: Findings, *, home: str, root: str, allowed: Sequence[str] = ()) -> Risk:
    """The highest danger found, and its reason. `allowed` is `workspace.sensitive_allow`."""
    worst = _SAFE
    for part in findings.parts:
        if part.why:
            worst = DangerLevel.HIGH, f"not known: {part.why}"
            break
    for effect in _notable(findings.effects, home, root):
        if findings.kept and effect in findings.kept:
            worst = _worse(worst, (DangerLevel.LOW, f"writes its own files in {effect.target}"))
        elif effect.kind is not EffectKind.EXEC:
            worst = _worse(worst, assess_effect(effect, home, root, allowed))
    for alarm in findings.alarms:
        worst = _worse(worst, alarm)
    return worst if worst[1] else (worst[0], "only reads")


def _notable(effects: list[Effect], home: str, root: str) -> list[Effect]:
    """The effects without plain reads, of which there may be hundreds, if none of them reads a secret."""
    read = EffectKind.READ
    exact = Reach.EXACT
    ordinary = [target for kind, target, reach in effects if kind is read and reach is exact]
    if any_secret(ordinary, root, home):
        return effects
    return [effect for effect in effects if effect[0] is not read or effect[2] is not exact]


def _worse(one: Risk, other: Risk) -> Risk:
    if other[0] > one[0]:
        return other
    names_more = other[0] is one[0] and one[1].startswith("not known") and other[1]
    return other if names_more else one


def assess_effect(effect: Effect, home: str, root: str, allowed: Sequence[str]) -> Risk:
    match effect.kind:
        case EffectKind.READ:
            return _assess_read(effect, home, root, allowed)
        case EffectKind.WRITE:
            return _assess_write(effect, root)
        case EffectKind.DELETE:
            return _assess_delete(effect, home, root)
        case EffectKind.NET:
            return _assess_contact(effect.target)
        case EffectKind.SEND:
            return DangerLevel.MEDIUM, f"sends data to {effect.target}"
        case _:
            return _SAFE


def _below_root(path: str, root: str) -> str:
    """The path below the workspace's root, if it lies in it: only that part counts."""
    return path[len(root) :] if root != "/" and is_under(path, root) else path


def _assess_read(effect: Effect, home: str, root: str, allowed: Sequence[str]) -> Risk:
    path = effect.target
    if effect.reach is Reach.NAMES:
        return _SAFE
    inside = _below_root(path, root)
    if effect.reach is Reach.MATCHING:
        if may_match_secret(inside):
            return DangerLevel.HIGH, f"reads {path}, which may match secrets"
    elif allowed and is_under(path, root) and is_named(inside.lstrip("/"), allowed):
        return _SAFE
    if is_secret(inside) or is_home_secret(f"\n{path}", home):
        return DangerLevel.HIGH, f"reads {path}, which may hold secrets"
    if effect.reach is Reach.BELOW and not is_under(path, root) and secrets_below(path, home):
        return DangerLevel.HIGH, f"reads everything below {path}, secrets included"
    return _SAFE


def _assess_write(effect: Effect, root: str) -> Risk:
    path = effect.target
    if _is_device(path):
        return DangerLevel.CRITICAL, f"writes to the device {path}"
    if not is_under(path, root):
        return DangerLevel.HIGH, f"writes {path}, outside the workspace"
    inside = _below_root(path, root)
    if not _HISTORY.isdisjoint(inside.split("/")) or is_secret(inside):
        return DangerLevel.HIGH, f"writes {path}, a protected path"
    return DangerLevel.MEDIUM, f"writes {path}"


def _assess_delete(effect: Effect, home: str, root: str) -> Risk:
    path = effect.target
    if effect.reach is Reach.BELOW and (_holds_system(path) or is_under(home, path) or is_under(root, path)):
        return DangerLevel.CRITICAL, f"deletes everything below {path}"
    if effect.reach is Reach.MATCHING and path.endswith("/**") and _sweeps(path[:-3] or "/", root):
        return DangerLevel.CRITICAL, f"deletes anywhere below {path[:-3] or '/'}"
    if effect.reach is Reach.BELOW and _PAST.search(path):
        return DangerLevel.CRITICAL, f"deletes the history in {path}"
    if _is_device(path):
        return DangerLevel.CRITICAL, f"deletes the device {path}"
    return DangerLevel.HIGH, f"deletes {path}"


def _is_device(path: str) -> bool:
    return path.startswith("/dev/") and not is_under(path, "/dev/shm")  # noqa: S108 - memory, not a device


def _holds_system(path: str) -> bool:
    return path in _SYSTEM_ROOTS or _HOME.fullmatch(path) is not None


def _sweeps(path: str, root: str) -> bool:
    """Whether files all over a system or a home directory are deleted; the workspace itself may lie in one."""
    return _holds_system(path) and not is_under(path, root)


def _assess_contact(host: str) -> Risk:
    name = host.rstrip(".").lower()
    if name in _PRIVATE or name.endswith((".localhost", ".internal", ".local", ".localdomain")):
        return DangerLevel.MEDIUM, f"contacts {host}, inside the private network"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # Spellings such as 2130706433, 0x7f.1 or 127.1 are addresses to the resolver.
        if host.replace(".", "").isdigit() or host.lower().startswith("0x"):
            return DangerLevel.MEDIUM, f"contacts {host}, an address in disguise"
        return _SAFE
    if address.is_global:
        return _SAFE
    return DangerLevel.MEDIUM, f"contacts {host}, inside the private network"
