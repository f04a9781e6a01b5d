"""Which values must never be written down, and where does a tool's secret come from?

A secret is a variable of the environment or an entry of the user's `secrets.toml`, which nobody else may read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from toolreeve.core.documents import read_document
from toolreeve.core.errors import ConfigError

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


@dataclass(frozen=True, slots=True, repr=False)
class SecretSource:
    environ: Mapping[str, str]
    file: Path

    def find(self, name: str) -> str | None:
        """The file is read each time, so that a secret can be replaced. Raises ConfigError if others may read it."""
        found = self._from_file().get(name)
        return self.environ.get(name) if found is None else found

    def _from_file(self) -> Mapping[str, str]:
        if not self.file.is_file():
            return {}
        if self.file.stat().st_mode & 0o077:
            raise ConfigError("is open to other users", source=self.file, fix=f"chmod 600 {self.file}")
        document = read_document(self.file)
        for name, value in document.value.items():
            if not isinstance(value, str):
                raise document.error("is not a text", path=(name,), fix=f'write {name} = "…"')
        return dict(document.value)
