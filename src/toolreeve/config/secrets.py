"""Secrets: of the user's private file, the keyring, and environment variables.

Their values are never written down, and never shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from toolreeve.config.secret_stores import FileSecrets, KeyringSecrets, find_keyring
from toolreeve.core.errors import ConfigError
from toolreeve.core.secrets.store import SecretStore

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


class SecretSource:
    """Looks secrets up: in the file, then in the keyring, then in the environment. `store` is where new ones go.

    `choice` is `secrets.store`. The keyring is opened when a secret is first not found in the file.
    """

    def __init__(self, environ: Mapping[str, str], file: Path, choice: str = "auto") -> None:
        self._environ = environ
        self._file = FileSecrets(file)
        self._lock = file.with_name("keyring")
        self._folder = file.parent
        self._choice = choice

    def find(self, name: str) -> str | None:
        """Raises ConfigError if other users may read the file, ToolError if the chosen keyring does not answer."""
        found = self._file.get(name)
        if found is None and self._keyring is not None:
            found = self._keyring.get(name)
        return self._environ.get(name) if found is None else found

    def find_without_keyring(self, name: str) -> str | None:
        """Opens no keyring, which may ask a person to unlock it."""
        found = self._file.get(name)
        return self._environ.get(name) if found is None else found

    @property
    def store(self) -> SecretStore:
        """Raises ConfigError if the chosen keyring is not there."""
        if self._keyring is not None:
            return self._keyring
        if self._choice == "keyring":
            raise ConfigError(self._why, source="secrets.store", fix='set secrets.store = "file", or add a keyring')
        return self._file

    def keep(self, name: str, value: str) -> None:
        """Into the store; an older value elsewhere, which would be found before it, is removed."""
        store = self.store
        store.set(name, value)
        if store is not self._file:
            self._file.remove(name)

    def lock_file(self, name: str) -> Path:
        """To be locked by the one process that renews a secret."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / f".{name}.renewal"

    @property
    def announcement(self) -> str:
        """Where secrets are kept, and why not in the keyring."""
        reason = f", because {self._why}" if self._choice == "auto" and self._why else ""
        return f"secrets are kept in {self.store.title}{reason}; secrets.store chooses"

    def stores(self) -> Sequence[SecretStore]:
        """All that hold secrets, as they are looked up."""
        return (self._file, *((self._keyring,) if self._keyring is not None else ()))

    def variables(self) -> Sequence[str]:
        """The environment variables that are taken for secrets."""
        return sorted(name for name, value in self._environ.items() if _is_secret(name, value, ()))

    @cached_property
    def _found(self) -> tuple[KeyringSecrets | None, str]:
        if self._choice == "file":
            return None, ""
        backend, why = find_keyring()
        return (None, why) if backend is None else (KeyringSecrets(backend, self._lock), "")

    @property
    def _keyring(self) -> KeyringSecrets | None:
        return self._found[0]

    @property
    def _why(self) -> str:
        return self._found[1]
