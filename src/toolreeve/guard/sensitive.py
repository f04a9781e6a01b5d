"""Which places hold secrets, or steer the runtime itself? Judged by the path inside an allowed root.

Pure. Names are compared without regard to case, for some file systems do not regard it either: rather one file too many
refused than one secret read. What is found here is refused even to an allowed tool, unless the configuration names it.
"""

import itertools
import re
from collections.abc import Sequence

SYSTEM = ("/etc", "/root", "/proc", "/sys", "/dev", "/boot", "/run", "/var/run")

_TEMPLATE = r"(?!.*(?:example|sample|template|dist|defaults?)\b)"
_SECRET_NAMES = re.compile(
    r"\.env(?:rc)?|" + _TEMPLATE + r"(?:\.env[._-].+|.+\.env)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?!.*\.pub$).*"
    r"|.*(?:key|priv).*\.pem|.+\.(?:key|p12|pfx|ppk|jks|keystore|kdbx)"
    r"|[._]netrc|\.git-credentials|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.htpasswd|\.dockercfg|\.vault-token"
    r"|\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.password-store|\.terraformrc"
)
_SECRET_PLACES = frozenset(
    {
        ("share", "keyrings"),
        (".config", "gcloud"),
        (".config", "gh"),
        (".config", "op"),
        (".cargo", "credentials"),
        (".cargo", "credentials.toml"),
        (".gem", "credentials"),
    }
)
_OWN = frozenset(
    {
        "toolreeve.toml",
        "policy.yaml",
        "policy.yml",
        "tools.yaml",
        "tools.yml",
        "auto_approval_policies.yaml",
        "governors.yaml",
        ".toolreeve",
    }
)


def find_secret(parts: Sequence[str]) -> str | None:
    """Why the path is a secret, or None. `parts` are the names from an allowed root down."""
    folded = [part.casefold() for part in parts]
    for name in folded:
        if _SECRET_NAMES.fullmatch(name):
            return f"{name!r} may hold secrets"
    for pair in itertools.pairwise(folded):
        if pair in _SECRET_PLACES:
            return f"{'/'.join(pair)!r} may hold secrets"
    return None


def is_own(parts: Sequence[str]) -> bool:
    """Whether the path steers the runtime itself: it may be read, but no tool changes it."""
    return bool(parts) and parts[0].casefold() in _OWN


def find_git_steering(parts: Sequence[str]) -> str | None:
    """Why a change of the path would change what git runs, or None."""
    folded = [part.casefold() for part in parts]
    for at, name in enumerate(folded):
        if name == ".git" and _steers_git(folded[at + 1 :]):
            return "git runs what stands here"
    return None


def _steers_git(below: Sequence[str]) -> bool:
    return not below or "hooks" in below or below[-1] in ("config", "config.worktree", "commondir", "attributes")


def find_system(path: str, root: str) -> str | None:
    """Why an absolute path belongs to the system, or None. A root that lies inside such a place names it."""
    for place in SYSTEM:
        if (path == place or path.startswith(f"{place}/")) and not (root == place or root.startswith(f"{place}/")):
            return f"{place} belongs to the system"
    return None
