"""Which values of the environment must never be written down? Those whose variables' names tell, and those named."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

TELLING = (
    "TOKEN",
    "KEY",
    "APIKEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "PAT",
)
MIN_LENGTH = 6
"""Shorter values stand in too many ordinary texts to be blotted out of them."""


def secret_values(named: Iterable[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """`named` are variables or patterns such as `MY_*`."""
    patterns = tuple(named)
    return tuple(
        value
        for name, value in environ.items()
        if len(value) >= MIN_LENGTH
        and (any(fnmatchcase(name, pattern) for pattern in patterns) or (_tells(name) and not value.startswith("/")))
    )


def _tells(name: str) -> bool:
    return name.upper().rsplit("_", 1)[-1] in TELLING
