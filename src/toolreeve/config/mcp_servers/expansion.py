"""What does `${…}` in a server's configuration stand for? A variable, a secret, the workspace or the home.

One pass, and no guesses: what is looked up is never looked into again, and what is not there is an error. A default may
be a reference itself, as in `${A:-${B}}`, but no further down.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_REFERENCE = re.compile(r"\$\{((?:[^{}$]|\$(?!\{)|\$\{[^{}]*\})*)(\})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACES = ("workspaceFolder", "userHome")


class Unresolved(ValueError):
    """A reference that stands for nothing; `fix` says what would mend it."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What references can stand for. `secret` returns None for a name it does not know; `private` are values of
    variables that are secret as well, whoever asks for them by which name."""

    environ: Mapping[str, str] = field(repr=False)
    secret: Callable[[str], str | None]
    workspace: str
    home: str
    private: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(slots=True)
class Expander:
    """Resolves the references of one server, and remembers which secrets it was given."""

    surroundings: Surroundings
    secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def expand(self, text: str) -> str:
        """Raises Unresolved."""
        return _REFERENCE.sub(self._resolve, text)

    def _resolve(self, found: re.Match[str]) -> str:
        inside = found[1]
        if found[2] is None:
            raise Unresolved(_open(found[0], found.string[found.end() :]), "write ${NAME}, or ${NAME:-${OTHER}}")
        if inside in _PLACES:
            return self.surroundings.workspace if inside == "workspaceFolder" else self.surroundings.home
        kind, colon, name = inside.partition(":")
        if colon and kind == "secret":
            return self._secret(name)
        if colon and kind == "input":
            fix = f"put it into secrets.toml and write ${{secret:{name}}}, or export a variable and write ${{NAME}}"
            raise Unresolved(f"${{input:{name}}} would have to be typed in, which nobody can here", fix)
        return self._variable(name if colon and kind == "env" else inside)

    def _variable(self, reference: str) -> str:
        name, has_default, default = reference.partition(":-")
        _require_name(name, reference)
        value = self.surroundings.environ.get(name)
        if has_default and not value:
            return self.expand(default)
        if value is None:
            raise Unresolved(f"the variable {name} is not set", f"export {name}, or write ${{{name}:-default}}")
        return self.pass_on(name)

    def pass_on(self, name: str) -> str:
        """The value of a variable that is set."""
        value = self.surroundings.environ[name]
        if value in self.surroundings.private:
            self.secrets[name] = value
        return value

    def _secret(self, name: str) -> str:
        _require_name(name, f"secret:{name}")
        value = self.surroundings.secret(name)
        if value is None:
            fix = f'add {name} = "…" to secrets.toml beside your toolreeve.toml, or export {name}'
            raise Unresolved(f"there is no secret {name}", fix)
        self.secrets[name] = value
        return value


def references(value: Any) -> Iterator[str]:
    """The variables and secrets that a value asks for, as written, wherever in it they stand."""
    if isinstance(value, str):
        yield from (found[0] for found in _REFERENCE.finditer(value) if found[1] not in _PLACES)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from references(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from references(each)


def _open(reference: str, rest: str) -> str:
    if rest.startswith("${"):
        return f"{reference[:60] + rest[:20]!r} holds a reference in a reference in a reference"
    return f"{reference[:60]!r} is not closed"


def _require_name(name: str, reference: str) -> None:
    if not _NAME.fullmatch(name):
        known = "${NAME}, ${NAME:-default}, ${env:NAME}, ${secret:NAME}, ${workspaceFolder} and ${userHome}"
        raise Unresolved(f"${{{reference}}} is nothing that can be looked up", f"known are {known}")
