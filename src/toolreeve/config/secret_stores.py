"""Secret stores: a private file, or the operating system's keyring.

The file is `secrets.toml` beside the user's toolreeve.toml, with mode 0600. The keyring needs the extra `keyring` and a
session that has one; without either, secrets stay in the file, and it is said why.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from toolreeve.core.atomic import locked, write_private
from toolreeve.core.documents import Document, read_document
from toolreeve.core.errors import ConfigError, ErrorCode, ToolError
from toolreeve.core.secrets.store import NAME, check_name, check_value

SERVICE = "toolreeve"
INDEX = "toolreeve names"
"""A keyring cannot list its entries: the names are an entry of their own, which no secret can be called."""
EXTRA = "pip install 'toolreeve[keyring]'"
_UNSAFE_BACKENDS = ("keyrings.alt", "keyring.backends.null", "keyring.backends.fail")


class FileSecrets:
    """`secrets.toml`: one text per name. Changes keep the comment at its top."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def title(self) -> str:
        return f"the file {self._path}"

    def get(self, name: str) -> str | None:
        return self.read().get(name)

    def set(self, name: str, value: str) -> None:
        check_name(name)
        check_value(value)
        with _locked(self._path):
            self._write({**self.read(), name: value})

    def remove(self, name: str) -> bool:
        with _locked(self._path):
            found = self.read()
            if found.pop(name, None) is None:
                return False
            self._write(found)
        return True

    def list(self) -> Sequence[str]:
        return sorted(self.read())

    def read(self) -> dict[str, str]:
        """Read each time, so that a secret can be rotated. Raises ConfigError if other users may read the file."""
        if not self._path.is_file():
            return {}
        if self._path.stat().st_mode & 0o077:
            raise ConfigError("is accessible to other users", source=self._path, fix=f"chmod 600 {self._path}")
        document = read_document(self._path)
        return {name: _text(name, value, document) for name, value in document.value.items()}

    def _write(self, secrets: dict[str, str]) -> None:
        entries = "".join(f"{_key(name)} = {_quote(value)}\n" for name, value in secrets.items())
        try:
            write_private(self._path, (self._head() + entries).encode())
        except OSError as problem:
            raise _unusable(f"{self._path} cannot be written: {problem.strerror}") from None

    def _head(self) -> str:
        lines = self._path.read_text().splitlines(keepends=True) if self._path.is_file() else []
        count = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
        return "".join(lines[:count])


class KeyringSecrets:
    """The keyring of the operating system, through the library `keyring`."""

    def __init__(self, backend: Any, lock: Path, *, patience: float = 20.0) -> None:
        self._backend = backend
        self._lock = lock
        self._patience = patience

    @property
    def title(self) -> str:
        return f"the keyring of the operating system ({self._backend.name})"

    def get(self, name: str) -> str | None:
        found = self._do("get_password", name) if NAME.fullmatch(name) else None
        return None if found is None else str(found)

    def set(self, name: str, value: str) -> None:
        check_name(name)
        check_value(value)
        with _locked(self._lock):
            self._do("set_password", name, value)
            self._do("set_password", INDEX, json.dumps(sorted({*self.list(), name})))

    def remove(self, name: str) -> bool:
        with _locked(self._lock):
            if self.get(name) is None:
                return False
            self._do("delete_password", name)
            self._do("set_password", INDEX, json.dumps(sorted({*self.list()} - {name})))
        return True

    def list(self) -> Sequence[str]:
        stored = self._do("get_password", INDEX)
        return sorted(json.loads(stored)) if stored else ()

    def _do(self, method: str, *args: str) -> Any:
        """A keyring that waits for somebody to unlock it, where there is no desktop, is not waited for."""
        from concurrent.futures import Future

        done: Future[Any] = Future()

        def work() -> None:
            try:
                done.set_result(getattr(self._backend, method)(SERVICE, *args))
            except BaseException as problem:
                done.set_exception(problem)

        threading.Thread(target=work, daemon=True, name="toolreeve-keyring").start()
        try:
            return done.result(self._patience)
        except TimeoutError:
            raise _unusable(f"{self.title} did not answer within {self._patience:g} s: is it locked?") from None
        except Exception as problem:  # each backend has its own
            raise _unusable(f"{self.title} does not answer: {problem}") from None


def find_keyring() -> tuple[Any, str]:
    """The backend, or None and why there is none that keeps secrets encrypted."""
    try:
        import keyring
    except ImportError:
        return None, f"the library keyring is not installed ({EXTRA})"
    backend = keyring.get_keyring()
    module = type(backend).__module__
    if module.startswith(_UNSAFE_BACKENDS) or getattr(backend, "priority", 0) <= 0:
        return None, f"this session has no keyring, as without a desktop (found {type(backend).__module__})"
    return backend, ""


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Against a lost update by another process or thread."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(path))
        except OSError as problem:
            raise _unusable(f"{path.parent} cannot be written: {problem.strerror}") from None
        yield


def _text(name: str, value: Any, document: Document) -> str:
    if not isinstance(value, str):
        raise document.error("is not a string", path=(name,), fix=f'write {name} = "…"')
    return value


def _key(name: str) -> str:
    return name if NAME.fullmatch(name) else _quote(name)


def _quote(value: str) -> str:
    """A basic string of TOML, which is a string of JSON but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _unusable(problem: str) -> ToolError:
    return ToolError(ErrorCode.PERMISSION, problem, suggestions=("choose another with secrets.store",))
