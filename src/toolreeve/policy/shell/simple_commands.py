"""Simple commands of a command line, for allow rules and grants.

Fail closed: what is not a plain command with literal words is covered by no rule, whatever its text looks like.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolreeve.core.danger import DangerLevel
from toolreeve.policy.shell.allowlist import RUNS_ANYTHING
from toolreeve.policy.shell.analysis import Analysis, analyse_script
from toolreeve.policy.shell.interpret.environment import may_export
from toolreeve.policy.shell.interpret.findings import CommandPart
from toolreeve.policy.shell.parse import grammar
from toolreeve.policy.shell.parse.syntax import (
    Assignment,
    Expansion,
    Group,
    Negated,
    Node,
    RawWord,
    Redirect,
    Redirected,
    ShellPipeline,
    ShellScript,
    Simple,
    Step,
)
from toolreeve.policy.shell.programs.spec import program
from toolreeve.policy.shell.programs.subcommands import count_script, find_subcommand

_SHELLS = frozenset(("bash", "sh"))
_RUN_TEXT = frozenset(("-c", "-lc"))
_MOVING = frozenset(("cd", "pushd", "popd"))
_DEEPEST = 4


class Link(NamedTuple):
    """A command by its words, or one that it wraps. `known`: all that it does is known. `explained`: its specification,
    or the lack of one, leaves no word that makes the program do something else than its name says. `elsewhere`: so many
    words name a script that is not the one of this name in the workspace's root; 0 if there is none."""

    words: tuple[str, ...]
    program: str
    known: bool
    explained: bool
    elsewhere: int = 0


class SimpleCommand(NamedTuple):
    """`chain` is the command and those that it wraps, outermost first; empty if no rule can cover it.

    `reads`: it is known to only read, so it needs no rule. `why`: what keeps it from running unasked.
    """

    source: str
    reads: bool
    chain: tuple[Link, ...] = ()
    why: str = ""


def simple_commands(analysis: Analysis) -> tuple[SimpleCommand, ...]:
    """Every simple command of the whole command, found once for each analysis."""
    found: tuple[SimpleCommand, ...] | None = analysis.cache.get("simple_commands")
    if found is None:
        found = analysis.cache["simple_commands"] = tuple(_Reader(analysis).script(analysis.script, 0))
    return found


class _Reader:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        moves = any(part.program in _MOVING for part in analysis.parts)
        self._is_elsewhere = moves or analysis.cwd != analysis.root

    def script(self, script: ShellScript, depth: int) -> Iterator[SimpleCommand]:
        for step in script.steps:
            yield from self._node(step.node, depth)

    def _node(self, node: Node, depth: int) -> Iterator[SimpleCommand]:
        match node:
            case ShellScript():
                yield from self.script(node, depth)
            case ShellPipeline():
                for stage in node.stages:
                    yield from self._node(stage, depth)
            case Group(body=body) | Negated(body=body):
                yield from self._node(body, depth)
            case Redirected():
                if problem := self._find_redirection(node.redirects):
                    yield SimpleCommand("a redirection", reads=False, why=problem)
                yield from self._node(node.body, depth)
            case Simple():
                yield from self._simple(node, depth)
            case _:
                yield self._whole(node)

    def _whole(self, node: Node) -> SimpleCommand:
        """A loop, a branch, a declaration: covered only if all of it is known to read."""
        alone = self._analyse(node)
        source = getattr(node, "source", type(node).__name__.lower())
        return SimpleCommand(source, reads=_reads(alone), why=alone.reason)

    def _simple(self, node: Simple, depth: int) -> Iterator[SimpleCommand]:
        alone = self._analyse(node)
        if _reads(alone):
            yield SimpleCommand(node.source, reads=True)
            return
        words = tuple(map(_literal, node.words))
        if problem := _find_problem(node, words) or self._find_redirection(node.redirects):
            yield SimpleCommand(node.source, reads=False, why=problem)
        elif words[0] in _SHELLS and len(words) == 3 and words[1] in _RUN_TEXT and depth < _DEEPEST:
            yield from self.script(grammar.parse(words[2] or ""), depth + 1)
        else:
            yield self._chained(node, tuple(word or "" for word in words))

    def _find_redirection(self, redirects: tuple[Redirect, ...]) -> str:
        """Why a redirection keeps the command from being covered. The files that it names are effects."""
        if not all(isinstance(each.target, str) for each in redirects):
            return "a redirection that is not literal"
        opened = self._analyse(Simple((":",), (), redirects))
        return "" if opened.known else opened.reason

    def _chained(self, node: Simple, words: tuple[str, ...]) -> SimpleCommand:
        alone = self._analyse(Simple(node.words))
        chain = []
        for part in alone.parts:
            if part.argv != words[len(words) - len(part.argv) :]:
                return SimpleCommand(node.source, reads=False, why=f"it runs `{' '.join(part.argv)}`")
            elsewhere = count_script(part.program, part.argv) if self._is_elsewhere else 0
            chain.append(Link(part.argv, part.program, part.known, self._is_explained(part), elsewhere))
        innermost = self._analyse(Simple(chain[-1].words))
        if not set(alone.alarms) <= set(innermost.alarms):
            return SimpleCommand(node.source, reads=False, why=alone.reason)
        return SimpleCommand(node.source, reads=False, chain=tuple(chain), why=alone.reason)

    def _is_explained(self, part: CommandPart) -> bool:
        """A program of a path is meant only where it stands; one with a specification only by words that this knows,
        unless it runs code of the workspace anyway, and no word is code itself."""
        name = part.argv[0]
        if name in RUNS_ANYTHING:
            return False
        if "/" in name and self._is_elsewhere and not name.startswith("/"):
            return False
        if part.known or part.code:
            return True
        spec, _ = find_subcommand(part.program, part.argv)
        if spec is None:
            return program(part.program) is None
        return bool(spec.code) and not any(spec.refuses(word) for word in part.argv[1:])

    def _analyse(self, node: Node) -> Analysis:
        return analyse_script(ShellScript((Step(node, ";"),)), self._analysis)


def _reads(alone: Analysis) -> bool:
    return alone.known and alone.danger <= DangerLevel.LOW


def _find_problem(node: Simple, words: Sequence[str | None]) -> str:
    """Why no rule can cover the command, whatever it names."""
    if not words or None in words:
        return "a word that is decided only when it runs"
    return "" if all(map(_is_harmless, node.assignments)) else "a variable that may change what the program does"


def _literal(word: RawWord) -> str | None:
    """The text of a literal word, or of a pattern over file names that cannot become an option; None for any other."""
    if isinstance(word, str):
        return word
    kinds = {part.kind for part in word.parts}
    first = word.parts[0]
    named = first.kind is None and first.text[:1] not in ("", "-")
    return word.source if kinds <= {None, Expansion.GLOB} and named else None


def _is_harmless(assignment: Assignment) -> bool:
    value = assignment.values[0] if len(assignment.values) == 1 and not assignment.array else None
    return may_export(assignment.name, value)
