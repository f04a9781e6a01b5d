"""Inspection of the calls of shell tools: danger, effects and rationale.

The analysis alone decides how dangerous a command is, so that every layer sees the same level.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from posixpath import join, normpath
from typing import TYPE_CHECKING, Any, NamedTuple

from toolreeve.core.argv import split
from toolreeve.core.call import Role
from toolreeve.core.command_settings import CommandRules
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ToolError
from toolreeve.core.tool import Rationale

if TYPE_CHECKING:
    from toolreeve.policy.shell.analysis import Analysis

Arguments = Mapping[str, Any]
CACHED = 256
CACHED_LONG = 4
LONG = 4096
"""The analysis of a longer command is large: it is cached only while its call is under way."""
OWN_SCRATCH = Effect(EffectKind.WRITE, "/tmp", Reach.BELOW)  # noqa: S108 - a name to compare with
"""Scratch files of programs: in the sandbox, /tmp is private to the command."""


class Inspection(NamedTuple):
    analysis: "Analysis"
    rationale: Rationale


class Inspector:
    """What commands do in the workspace at `root`. `allowed` is `workspace.sensitive_allow`."""

    def __init__(self, *, root: str, home: str, allowed: Sequence[str] = ()) -> None:
        self._root = root
        place: dict[str, Any] = {"home": home, "root": root, "allowed": allowed}

        @_cached
        def script(command: str, directory: str) -> "Analysis":
            from toolreeve.policy.shell.analysis import analyse

            return analyse(command, cwd=normpath(join(root, directory)), **place)

        @_cached
        def programs(command: str, directory: str) -> "Analysis":
            from toolreeve.policy.shell.analysis import analyse_programs

            return analyse_programs(split(command), cwd=normpath(join(root, directory)), **place)

        self._script = script
        self._programs = programs

    def script(self, args: Arguments) -> Inspection:
        """The call of a tool that starts a shell."""
        return self._script(str(args.get("command", "")), str(args.get("working_dir") or "."))

    def programs(self, args: Arguments) -> Inspection:
        """The call of a tool that starts programs without a shell."""
        command = str(args.get("command", ""))
        try:
            return self._programs(command, ".")
        except ToolError:  # not a list of programs: the tool itself will refuse it
            return self._script(command, ".")

    def refusal(self, args: Arguments, role: Role, rules: CommandRules) -> str | None:
        """Why programs may not be started without a shell, for this role. Raises ToolError if they cannot be."""
        from toolreeve.policy.shell.allowlist import refusal

        found = self._programs(str(args["command"]), ".").analysis
        return refusal(found, role, rules, root=self._root)


Inspect = Callable[[Arguments], Inspection]


def assess(inspect: Inspect, args: Arguments) -> DangerLevel:
    return inspect(args).analysis.danger


def list_effects(inspect: Inspect, args: Arguments) -> tuple[Effect, ...]:
    return tuple(each for each in inspect(args).analysis.effects if each != OWN_SCRATCH)


def _cached(analyse: Callable[[str, str], "Analysis"]) -> Callable[[str, str], Inspection]:
    """Each call needs the analysis of its command several times."""

    def inspect(command: str, directory: str) -> Inspection:
        found = analyse(command, directory)
        parts = tuple((" ".join(part.argv), part.why) for part in found.parts)
        return Inspection(found, Rationale(found.reason, parts, found))

    short = lru_cache(maxsize=CACHED)(inspect)
    long = lru_cache(maxsize=CACHED_LONG)(inspect)

    def lookup(command: str, directory: str) -> Inspection:
        if len(command) <= LONG:
            return short(command, directory)
        return long(command, directory)

    return lookup
