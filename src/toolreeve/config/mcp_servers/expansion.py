"""Expands `${…}` in a server's configuration: variables, secrets, workspace and home.

One pass, and no guesses: a looked-up value is never expanded again, and a missing one is an error. A default may be a
reference itself, as in `${A:-${B}}`, but no deeper.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_REFERENCE = re.compile(r"\$\{((?:[^{}$]|\$(?!\{)|\$\{[^{}]*\})*)(\})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACES = ("workspaceFolder", "userHome")


class Unresolved(ValueError):
    """A reference without a value; `fix` says how to give it one."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The values of references. `secret` returns None for an unknown name; `private` are values of variables that are
    secret as well, under any name. With `literal`, nothing is a reference: for those who may not read the values."""

    environ: Mapping[str, str] = field(repr=False)
    secret: Callable[[str], str | None]
    workspace: str
    home: str
    private: frozenset[str] = field(default=frozenset(), repr=False)
    literal: bool = False


@dataclass(slots=True)
class Expander:
    """Expands the references of one server, and remembers which secrets it gets."""

    surroundings: Surroundings
    secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def expand(self, text: str) -> str:
        """Raises Unresolved."""
        if self.surroundings.literal:
            return text
        return _REFERENCE.sub(self._resolve, text)

    def _resolve(self, found: re.Match[str]) -> str:
        inside = found[1]
        if found[2] is None:
            problem = _describe_unclosed(found[0], found.string[found.end() :])
            raise Unresolved(problem, "write ${NAME}, or ${NAME:-${OTHER}}")
        if inside == "workspaceFolder":
            return self.surroundings.workspace
        if inside == "userHome":
            return self.surroundings.home
        kind, colon, name = inside.partition(":")
        if colon and kind == "secret":
            return self._secret(name)
        if colon and kind == "input":
            fix = f"put it into secrets.toml and write ${{secret:{name}}}, or export a variable and write ${{NAME}}"
            raise Unresolved(f"${{input:{name}}} asks for input, which is not supported", fix)
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
            raise Unresolved(f"the secret {name} is not set", fix)
        self.secrets[name] = value
        return value


def references(value: Any) -> Iterator[str]:
    """The variables and secrets that a value refers to, as written, at any depth."""
    if isinstance(value, str):
        yield from (found[0] for found in _REFERENCE.finditer(value) if found[1] not in _PLACES)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from references(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from references(each)


def _describe_unclosed(reference: str, rest: str) -> str:
    if rest.startswith("${"):
        return f"{reference[:60] + rest[:20]!r} nests references too deep"
    return f"{reference[:60]!r} is not closed"


def _require_name(name: str, reference: str) -> None:
    if not _NAME.fullmatch(name):
        known = "${NAME}, ${NAME:-default}, ${env:NAME}, ${secret:NAME}, ${workspaceFolder} and ${userHome}"
        raise Unresolved(f"${{{reference}}} is not a valid reference", f"known are {known}")
