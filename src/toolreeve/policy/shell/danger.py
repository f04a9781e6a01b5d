"""How much harm could a command do? The worst of its effects, its alarms and what is not known about it.

SAFE runs unasked, so it is only for commands that are known throughout, change nothing, and read nothing secret.
"""

import ipaddress
import re

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.shell.interpret.findings import Findings
from toolreeve.policy.shell.interpret.paths import any_secret, is_secret, is_under, may_match_secret, secrets_below

_HISTORY = frozenset((".git", ".hg", ".svn"))
_SYSTEM_ROOTS = frozenset(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /srv /sys /usr /var /mnt /media /Users /System "
    "/Library".split()
)
_HOME = re.compile(r"/(?:home|Users|mnt|media|Volumes)/[^/]+")
"""The home of somebody, or a disk."""
_PAST = re.compile(
    r"/(?:\.git(?:/(?:objects|refs|logs|modules)(?:/.*)?)?|\.hg(?:/store(?:/.*)?)?|\.svn(?:/.*)?)\Z", re.DOTALL
)
_PRIVATE = frozenset(("localhost", "ip6-localhost", "ip6-loopback", "metadata"))
Risk = tuple[DangerLevel, str]
_SAFE: Risk = (DangerLevel.SAFE, "")


def assess(findings: Findings, *, home: str, root: str) -> Risk:
    """The level, and the reason for the worst thing found."""
    worst = _SAFE
    for part in findings.parts:
        if part.why:
            worst = DangerLevel.HIGH, f"not known: {part.why}"
            break
    for effect in _notable(findings.effects, root):
        if findings.kept and effect in findings.kept:
            worst = _worse(worst, (DangerLevel.LOW, f"keeps files of its own in {effect.target}"))
        elif effect.kind is not EffectKind.EXEC:
            worst = _worse(worst, _of(effect, home, root))
    for judged in findings.alarms:
        worst = _worse(worst, judged)
    return worst if worst[1] else (worst[0], "only reads")


def _notable(effects: list[Effect], root: str) -> list[Effect]:
    """Without the files that are plainly read, of which there may be hundreds, if none of them is a secret."""
    read, exact = EffectKind.READ, Reach.EXACT
    ordinary = [target for kind, target, reach in effects if kind is read and reach is exact]
    if any_secret(ordinary, root):
        return effects
    return [effect for effect in effects if effect[0] is not read or effect[2] is not exact]


def _worse(one: Risk, other: Risk) -> Risk:
    return other if other[0] > one[0] or ((other[0] is one[0] and one[1].startswith("not known")) and other[1]) else one


def _of(effect: Effect, home: str, root: str) -> Risk:
    match effect.kind:
        case EffectKind.READ:
            return _reading(effect, home, root)
        case EffectKind.WRITE:
            return _writing(effect, root)
        case EffectKind.DELETE:
            return _deleting(effect, home, root)
        case EffectKind.NET:
            return _contacting(effect.target)
        case EffectKind.SEND:
            return DangerLevel.MEDIUM, f"sends data to {effect.target}"
        case _:
            return _SAFE


def _inside(path: str, root: str) -> str:
    """Inside the workspace only the part below its root counts."""
    return path[len(root) :] if root != "/" and is_under(path, root) else path


def _reading(effect: Effect, home: str, root: str) -> Risk:
    path = effect.target
    if effect.reach is Reach.NAMES:
        return _SAFE
    if effect.reach is Reach.MATCHING and may_match_secret(_inside(path, root)):
        return DangerLevel.HIGH, f"reads {path}, which may match secrets"
    if is_secret(_inside(path, root)):
        return DangerLevel.HIGH, f"reads {path}, which may hold secrets"
    if effect.reach is Reach.BELOW and not is_under(path, root) and secrets_below(path, home):
        return DangerLevel.HIGH, f"reads everything below {path}, secrets included"
    return _SAFE


def _writing(effect: Effect, root: str) -> Risk:
    path = effect.target
    if path.startswith("/dev/"):
        return DangerLevel.CRITICAL, f"writes to the device {path}"
    if not is_under(path, root):
        return DangerLevel.HIGH, f"writes {path}, outside the workspace"
    inside = _inside(path, root)
    if not _HISTORY.isdisjoint(inside.split("/")) or is_secret(inside):
        return DangerLevel.HIGH, f"writes {path}, a protected place"
    return DangerLevel.MEDIUM, f"writes {path}"


def _deleting(effect: Effect, home: str, root: str) -> Risk:
    path = effect.target
    if effect.reach is Reach.BELOW and (_holds_system(path) or is_under(home, path) or is_under(root, path)):
        return DangerLevel.CRITICAL, f"deletes everything below {path}"
    if effect.reach is Reach.MATCHING and path.endswith("/**") and _sweeps(path[:-3] or "/", root):
        return DangerLevel.CRITICAL, f"deletes anywhere below {path[:-3] or '/'}"
    if effect.reach is Reach.BELOW and _PAST.search(path):
        return DangerLevel.CRITICAL, f"deletes the history in {path}"
    if path.startswith("/dev/"):
        return DangerLevel.CRITICAL, f"deletes the device {path}"
    return DangerLevel.HIGH, f"deletes {path}"


def _holds_system(path: str) -> bool:
    return path in _SYSTEM_ROOTS or _HOME.fullmatch(path) is not None


def _sweeps(path: str, root: str) -> bool:
    """Whether files are deleted all over a system or a home, whichever they are; the workspace may be in one."""
    return _holds_system(path) and not is_under(path, root)


def _contacting(host: str) -> Risk:
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
