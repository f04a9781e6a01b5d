"""Secrets: environment variables, and entries of the user's `secrets.toml`.

Their values are never written down. No other user may read `secrets.toml`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from toolreeve.core.documents import read_document
from toolreeve.core.errors import ConfigError

SECRET_WORDS = (
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
"""Shorter values occur in too many ordinary texts to be redacted."""


def secret_values(named: Iterable[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """`named` are variables or patterns such as `MY_*`."""
    patterns = tuple(named)
    return tuple(value for name, value in environ.items() if _is_secret(name, value, patterns))


def _is_secret(name: str, value: str, patterns: Sequence[str]) -> bool:
    if len(value) < MIN_LENGTH:
        return False
    if any(fnmatchcase(name, pattern) for pattern in patterns):
        return True
    is_path = value.startswith("/")
    return name.upper().rsplit("_", 1)[-1] in SECRET_WORDS and not is_path


@dataclass(frozen=True, slots=True, repr=False)
class SecretSource:
    environ: Mapping[str, str]
    file: Path

    def find(self, name: str) -> str | None:
        """Reads the file each time, so that a secret can be rotated. Raises ConfigError if other users may read it."""
        found = self._read_file().get(name)
        return self.environ.get(name) if found is None else found

    def _read_file(self) -> Mapping[str, str]:
        if not self.file.is_file():
            return {}
        if self.file.stat().st_mode & 0o077:
            raise ConfigError("is accessible to other users", source=self.file, fix=f"chmod 600 {self.file}")
        document = read_document(self.file)
        for name, value in document.value.items():
            if not isinstance(value, str):
                raise document.error("is not a string", path=(name,), fix=f'write {name} = "…"')
        return dict(document.value)
