"""Abstract interpreter of parsed scripts.

Both ways of a branch, both outcomes of a `cd`, and every pass of a loop count. What is not understood is reported as
not known, never skipped.
"""

from collections.abc import Callable

from toolreeve.policy.shell.interpret.builtins import BUILTINS
from toolreeve.policy.shell.interpret.conditionals import check_test
from toolreeve.policy.shell.interpret.environment import ALL_VARIABLES, may_assign, may_export, names_code
from toolreeve.policy.shell.interpret.expansion import Dynamic, Word, expand, several
from toolreeve.policy.shell.interpret.findings import CommandPart, CommandSite
from toolreeve.policy.shell.interpret.printed_paths import NOTHING, Printed
from toolreeve.policy.shell.interpret.runner import MOST_COMMANDS, CommandRunner, only_reads
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.interpret.streams import merges_stderr, redirect, replaces_stdin
from toolreeve.policy.shell.parse import grammar
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.size import SHORT
from toolreeve.policy.shell.parse.syntax import (
    Assignment,
    Branch,
    Declaration,
    Expansion,
    Group,
    Loop,
    Negated,
    Node,
    Opaque,
    RawWord,
    Redirect,
    Redirected,
    ShellPipeline,
    ShellScript,
    Simple,
    Step,
    Test,
)
from toolreeve.policy.shell.programs.arguments import NotKnown

_LASTING = frozenset(
    ": . break continue eval exec exit export readonly return set shift source times trap unset".split()
)
"""Builtins before which a POSIX shell keeps an assignment after the command."""
_MOST_PASSES = 16
_MOST_NODES = 4000


class ShellInterpreter(CommandRunner):
    """`findings` grow with every step. In a long command every inner text is size-checked, and each is parsed once."""

    __slots__ = ("_nodes", "_parsed", "_short")

    def __init__(self, source: str = "") -> None:
        super().__init__(source)
        self._nodes = 0
        self._short = 0 if len(source) > SHORT else SHORT
        self._parsed: dict[str, ShellScript] = {}

    def script(self, script: ShellScript, scope: ShellScope, piped: Printed = NOTHING) -> Printed:
        """Interprets the steps in order in one scope; answers what a single step prints."""
        printed: Printed = None
        chain: list[Step] = []
        if len(script.steps) > 1:
            piped = _remaining(piped)
        for step in script.steps:
            if step[1] in ("&&", "||"):
                chain.append(step)
            elif chain:
                printed = self._chain([*chain, step], scope, piped)
                chain = []
            else:
                printed = self._alone(step, scope, piped)
        if chain:
            printed = self._chain(chain, scope, piped)
        return printed if len(script.steps) == 1 else None

    def _alone(self, step: Step, scope: ShellScope, piped: Printed) -> Printed:
        if step.operator == "&":
            self.findings.background = True
            return self.node(step.node, scope.copy(), piped)
        start = scope.directories
        printed = self.node(step.node, scope, piped)
        if scope.directories is not start:
            scope.add_directories(start)  # a `cd` may have failed, and the script gone on where it was
        return printed

    def _chain(self, steps: list[Step], scope: ShellScope, piped: Printed) -> Printed:
        """`a && b || c`: the first runs, others may; a step after `||` is reached whichever of the earlier ones ran."""
        background = steps[-1].operator == "&"
        self.findings.background = self.findings.background or background
        inner = scope.copy() if background else scope
        start = inner.directories
        been = None
        skipping = False
        for node, operator in steps:
            printed = self.node(node, inner, piped)
            if been is None:
                been = inner.copy()
                been.add_directories(start)
            else:
                been.merge(inner)
            skipping = skipping or operator == "||"
            if skipping:
                inner.assign_from(been)
        if been is not None:
            inner.assign_from(been)
        return printed

    def node(self, node: Node, scope: ShellScope, piped: Printed = NOTHING) -> Printed:
        self._nodes += 1
        if self._nodes > _MOST_NODES or len(self.findings.parts) > MOST_COMMANDS:
            raise Unreadable("too many commands")
        match node:
            case Simple():
                return self._simple(node, scope, piped)
            case ShellPipeline():
                return self._pipeline(node, scope, piped)
            case Opaque():
                self._unknown((node.source,), node.why)
            case ShellScript():
                return self.script(node, scope, piped)
            case Group():
                return self.script(node.body, scope.copy() if node.subshell else scope, piped)
            case Negated():
                return self._negated(node, scope, piped)
            case Redirected():
                return self._redirected(node, scope, piped)
            case Loop():
                self._loop(node, scope, piped)
            case Branch():
                self._branch(node, scope, piped)
            case Test():
                self._guarded(lambda: self._test(node, scope), node.source)
            case Declaration():
                self._guarded(lambda: self._declare(node, scope), node.source)
        return None

    def _pipeline(self, node: ShellPipeline, scope: ShellScope, piped: Printed) -> Printed:
        """Every stage is a subshell: the next does not see what one changes."""
        inner = scope.copy()
        for stage in node.stages:
            if inner.directories is not scope.directories or inner.variables != scope.variables:
                inner = scope.copy()
            piped = self.node(stage, inner, piped)
        return piped

    def _unknown(self, argv: tuple[str, ...], why: str) -> None:
        self.findings.parts.append(CommandPart(argv, why))

    def _guarded(self, work: Callable[[], object], source: str) -> None:
        try:
            work()
        except (NotKnown, Unreadable) as problem:
            self._unknown((source,), str(problem))

    def _expand(self, words: tuple[RawWord, ...], scope: ShellScope) -> list[Word]:
        for word in words:
            if type(word) is not str:
                return expand(words, scope, lambda script: self.script(script, scope.copy(), None))
        return list(words)  # type: ignore[arg-type]

    def _simple(self, node: Simple, scope: ShellScope, piped: Printed) -> Printed:
        try:
            words = self._expand(node.words, scope)
            if node.redirects:
                self._redirects(node.redirects, scope)
                piped = None if replaces_stdin(node.redirects) else piped
            changed = self._assign(node.assignments, scope, words[0] if words else None) if node.assignments else ""
        except (NotKnown, Unreadable) as problem:
            name = node.words[0] if node.words and isinstance(node.words[0], str) else ""
            self.findings.parts.append(CommandPart((node.source,), str(problem), name, reads=only_reads(name)))
            return None
        if not words:
            self.findings.parts.append(CommandPart((node.source,), ""))
            return None
        place = len(self.findings.parts)
        printed = self.run(words, scope, piped)
        if changed:
            printed = None
            part = self.findings.parts[place]
            code = part.code or part.known
            why = f"sets {changed}, from which programs load code" if names_code(changed) else _changing(changed)
            self.findings.parts[place] = part._replace(why=why, code=code and names_code(changed), reads=False)
        return None if node.redirects and merges_stderr(node.redirects) else printed

    def _negated(self, node: Negated, scope: ShellScope, piped: Printed) -> Printed:
        """If `! cd x` succeeds, the directory has not changed."""
        inner = scope.copy()
        printed = self.node(node.body, inner, piped)
        scope.merge(inner)
        return printed

    def _redirected(self, node: Redirected, scope: ShellScope, piped: Printed) -> Printed:
        """A group, a loop or a branch; bash skips it if a file cannot be opened."""
        self._guarded(lambda: self._redirects(node.redirects, scope), "a redirection")
        inner = scope.copy()
        printed = self.node(node.body, inner, None if replaces_stdin(node.redirects) else piped)
        scope.merge(inner)
        return None if merges_stderr(node.redirects) else printed

    def run_text(self, text: str, scope: ShellScope) -> Printed:
        if text not in self._parsed:
            self._parsed[text] = grammar.parse(text, short=self._short)
        return self.script(self._parsed[text], scope, None)

    def _redirects(self, redirects: tuple[Redirect, ...], scope: ShellScope) -> None:
        site = CommandSite(self.findings, scope, None, self)
        for operator, _, target in redirects:
            words = self._expand((target,), scope)
            if operator in ("<<", "<<<"):
                continue
            if len(words) != 1:
                raise NotKnown("a redirection to several words")
            redirect(operator, words[0], site)

    def _assign(self, assignments: tuple[Assignment, ...], scope: ShellScope, command: Word | None) -> str:
        """A shell variable, or the environment of `command` when there is one. Answers the variable, if any, by which
        the command itself may do something else."""
        changed = ""
        for assignment in assignments:
            name = assignment.name
            value = self._assigned_value(assignment, scope)
            if command is None:
                allowed = may_assign(name)
                scope.variables[name] = value
            else:
                allowed = may_export(name, value) or (name == "IFS" and command == "read")
                if command in _LASTING:
                    scope.forget((name,))
            if not allowed and (command is None or command in BUILTINS):
                raise NotKnown(_changing(name))
            if not allowed and (not changed or names_code(changed)):
                changed = name
        return changed

    def _assigned_value(self, assignment: Assignment, scope: ShellScope) -> Word:
        words = self._expand(assignment.values, scope)
        if assignment.array or len(words) != 1:
            return Dynamic()
        source = assignment.values[0] if isinstance(assignment.values[0], str) else assignment.values[0].source
        if ":~" in source or "=~" in source or _is_braced(assignment.values[0]):
            raise Unreadable("a value that bash expands differently from a word")
        return words[0]

    def _declare(self, node: Declaration, scope: ShellScope) -> None:
        if node.keyword not in ("export", "declare"):
            raise NotKnown(f"`{node.keyword}`")
        names = [flag for flag in node.flags if not flag.startswith("-")]
        if not names and not node.assignments:
            raise NotKnown(ALL_VARIABLES)
        for name in names:
            scope.value(name)
        if any(flag not in ("-x", "-a", "-p") for flag in node.flags if flag.startswith("-")):
            raise NotKnown(f"`{node.keyword}` with flags")
        for name in names:
            if not may_export(name, ""):
                raise NotKnown(f"exports {name}")
        self._assign(node.assignments, scope, node.keyword)
        scope.forget(assignment.name for assignment in node.assignments)
        self.findings.parts.append(CommandPart((node.source,), ""))

    def _test(self, node: Test, scope: ShellScope) -> None:
        words = self._expand(node.words, scope)
        check_test(words, node.operators, double=node.double)
        self.findings.parts.append(CommandPart((node.source,), ""))

    def _loop(self, node: Loop, scope: ShellScope, piped: Printed) -> None:
        """A variable that the loop sets may have any value when a pass begins, and after the last one."""
        piped = _remaining(piped)
        scope.forget(_set_by(node))
        self._guarded(lambda: self._passes(node, scope, piped), "a loop")

    def _passes(self, node: Loop, scope: ShellScope, piped: Printed) -> None:
        for value in self._values(node, scope):
            inner = scope.copy()
            if node.condition is not None:
                self.script(node.condition, inner, piped)
            else:
                inner.variables[node.variable] = value
            self.script(node.body, inner, piped)
            if inner.directories != scope.directories:
                raise NotKnown("a loop that changes the directory")
            if any(type(scope.variables.get(name)) is not Dynamic for name in scope.differing_names(inner)):
                raise NotKnown("a loop that changes variables in a way that is not followed")

    def _values(self, node: Loop, scope: ShellScope) -> list[Word]:
        if node.condition is not None:
            return [Dynamic()]
        if not may_assign(node.variable):
            raise NotKnown(f"sets {node.variable}, which changes what programs do")
        values = [_element_of(value) for value in self._expand(node.values, scope)]
        return values if len(values) <= _MOST_PASSES else [Dynamic()]

    def _branch(self, node: Branch, scope: ShellScope, piped: Printed) -> None:
        """Every arm may run, also after another: the conditions are arms, and a `case` may fall through."""
        self._guarded(lambda: self._expand(node.words, scope), "case")
        piped = _remaining(piped)
        for arm in node.arms:
            inner = scope.copy()
            self.script(arm, inner, piped)
            scope.merge(inner)


def _set_by(loop: Loop) -> set[str]:
    """The variables that a loop sets, anywhere in it."""
    names: set[str] = set()
    pending: list[object] = [loop]
    while pending:
        item = pending.pop()
        if isinstance(item, Assignment):
            names.add(item.name)
        if isinstance(item, Loop) and item.variable:
            names.add(item.variable)
        if isinstance(item, Simple) and "read" in item.words:
            names.update(("REPLY", *(word for word in item.words if isinstance(word, str) and word.isidentifier())))
        if isinstance(item, tuple):
            pending.extend(item)
    return names


def _changing(name: str) -> str:
    return f"sets {name}, which changes what programs do"


def _remaining(piped: Printed) -> Printed:
    """The input that one command leaves for the next may begin anywhere."""
    return piped if piped is NOTHING else None


def _element_of(value: Word) -> Word:
    """One of the words that a value is split into."""
    return Dynamic(why=value.why) if isinstance(value, Dynamic) and several(value) and not value.each else value


def _is_braced(word: RawWord) -> bool:
    return not isinstance(word, str) and word.parts[0].kind is Expansion.BRACES
