"""Shell scope: current directories and variables at one point of a script.

A value is known only if its assignment certainly ran: where two paths merge, whatever differs between them is dynamic.
"""

from collections.abc import Iterable

from toolreeve.policy.shell.interpret.environment import may_be_secret
from toolreeve.policy.shell.interpret.expansion import Dynamic, Word
from toolreeve.policy.shell.parse.scanner import Unreadable

_NUMBERS = ("$", "#", "?")
"""Numeric parameters that every shell sets."""
_MOST_DIRECTORIES = 4


class ShellScope:
    __slots__ = ("directories", "home", "root", "start", "variables")

    def __init__(
        self,
        directories: tuple[str, ...],
        home: str,
        root: str,
        variables: dict[str, Word] | None = None,
        start: str = "",
    ) -> None:
        self.directories = directories
        self.start = start or directories[0]
        self.home = home
        self.root = root
        self.variables = {} if variables is None else variables

    def copy(self) -> "ShellScope":
        return ShellScope(self.directories, self.home, self.root, dict(self.variables), self.start)

    def value(self, name: str) -> Word:
        known = self.variables.get(name)
        if known is not None and type(known) is not Dynamic:
            return known
        if name == "HOME":
            return self.home
        if name == "PWD" and len(self.directories) == 1:
            return self.directories[0]
        if may_be_secret(name):
            raise Unreadable(f"${name} may hold a secret")
        if known is not None:
            return known
        number = name in _NUMBERS
        return Dynamic(flagless=number or name in ("PWD", "OLDPWD", "PATH"), single=number, solid=number)

    def forget(self, names: Iterable[str]) -> None:
        """The variables may have any value from here on."""
        self.variables.update(dict.fromkeys(names, Dynamic()))

    def add_directories(self, directories: tuple[str, ...]) -> None:
        if directories is not self.directories:
            self.directories = tuple(dict.fromkeys(directories + self.directories))
        if len(self.directories) > _MOST_DIRECTORIES:
            raise Unreadable("too many directories it might be in")

    def merge(self, other: "ShellScope") -> None:
        """Merge the scope of another path that leads here."""
        self.add_directories(other.directories)
        if other.variables != self.variables:
            self.forget(self.differing_names(other))

    def differing_names(self, other: "ShellScope") -> list[str]:
        names = {**self.variables, **other.variables}
        return [name for name in names if self.variables.get(name) != other.variables.get(name)]

    def assign_from(self, other: "ShellScope") -> None:
        self.directories = other.directories
        self.variables = dict(other.variables)
