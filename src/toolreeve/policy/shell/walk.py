"""What do the commands of a script do, in the order in which bash may run them?

Both ways of a branch, both outcomes of a `cd`, and every pass of a loop count. What is not understood is reported as
not known, never skipped.
"""

import re
from collections.abc import Callable

from toolreeve.core.effects import EffectKind
from toolreeve.policy.shell import grammar
from toolreeve.policy.shell.arguments import NotKnown
from toolreeve.policy.shell.environment import may_assign, may_export
from toolreeve.policy.shell.paths import QUIET
from toolreeve.policy.shell.runner import MOST_COMMANDS, Runner
from toolreeve.policy.shell.scan import Unreadable
from toolreeve.policy.shell.site import PartOf, Printed, Site
from toolreeve.policy.shell.syntax import (
    Assignment,
    Branch,
    Declaration,
    Group,
    Loop,
    Node,
    Opaque,
    Pipeline,
    RawWord,
    Redirect,
    Redirected,
    Script,
    Simple,
    Test,
)
from toolreeve.policy.shell.words import Glob, Open, Scope, Word, expand

_NUMERIC_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"))
_MOST_PASSES = 16
_MOST_DIRECTORIES = 4


class Walk(Runner):
    """`findings` grow with every step."""

    __slots__ = ()

    def script(self, script: Script, scope: Scope, piped: Printed = ()) -> Printed:
        """Walks the steps in order in one scope; answers what the last one prints, if it is the only one that does."""
        printed: Printed = None
        been = scope.directories
        for node, operator in script.steps:
            printed = self.node(node, scope.copy() if operator == "&" else scope, piped)
            if scope.directories is not been:
                # Any `cd` since the last `;` or `||` may have failed, and the script gone on where it was.
                been = _either(been, scope.directories)
                scope.directories = scope.directories if operator == "&&" else been
        return printed if len(script.steps) == 1 else None

    def node(self, node: Node, scope: Scope, piped: Printed = ()) -> Printed:
        if len(self.findings.parts) > MOST_COMMANDS:
            raise Unreadable("too many commands")
        match node:
            case Simple():
                return self._simple(node, scope, piped)
            case Pipeline():
                return self._pipeline(node, scope, piped)
            case Opaque():
                self._unknown((node.source,), node.why)
            case Script():
                return self.script(node, scope, piped)
            case Group():
                return self.script(node.body, scope.copy() if node.subshell else scope, piped)
            case Redirected():
                self._guarded(lambda: self._redirects(node.redirects, scope), "a redirection")
                return self.node(node.body, scope, piped)
            case Loop():
                self._loop(node, scope, piped)
            case Branch():
                self._branch(node, scope, piped)
            case Test():
                self._guarded(lambda: self._test(node, scope), node.source)
            case Declaration():
                self._guarded(lambda: self._declare(node, scope), node.source)
        return None

    def _pipeline(self, node: Pipeline, scope: Scope, piped: Printed) -> Printed:
        """Every stage is a shell of its own: what one changes, the next does not see."""
        inner = scope.copy()
        for stage in node.stages:
            if inner.directories is not scope.directories or inner.variables != scope.variables:
                inner = scope.copy()
            piped = self.node(stage, inner, piped)
        return piped

    def _unknown(self, argv: tuple[str, ...], why: str) -> None:
        self.findings.parts.append(PartOf(argv, why))

    def _guarded(self, work: Callable[[], object], source: str) -> None:
        try:
            work()
        except (NotKnown, Unreadable) as problem:
            self._unknown((source,), str(problem))

    def _expand(self, words: tuple[RawWord, ...], scope: Scope) -> list[Word]:
        for word in words:
            if type(word) is not str:
                return expand(words, scope, lambda script: self.script(script, scope.copy()))
        return list(words)  # type: ignore[arg-type]

    def _simple(self, node: Simple, scope: Scope, piped: Printed) -> Printed:
        try:
            words = self._expand(node.words, scope)
            if node.redirects:
                self._redirects(node.redirects, scope)
                if any(redirect.operator in ("<", "<<", "<<<") for redirect in node.redirects):
                    piped = None
            if node.assignments:
                self._assign(node.assignments, scope, words[0] if words else None)
        except (NotKnown, Unreadable) as problem:
            self._unknown((node.source,), str(problem))
            return None
        if not words:
            self.findings.parts.append(PartOf((node.source,), ""))
            return None
        return self.run(words, scope, piped)

    def run_text(self, text: str, scope: Scope) -> Printed:
        return self.script(grammar.parse(text), scope)

    def _redirects(self, redirects: tuple[Redirect, ...], scope: Scope) -> None:
        site = Site(self.findings, scope, None, self)
        for operator, _, target in redirects:
            words = self._expand((target,), scope)
            if operator in ("<<", "<<<"):
                continue
            if len(words) != 1:
                raise NotKnown("a redirection to several words")
            _redirect(operator, words[0], site)

    def _assign(self, assignments: tuple[Assignment, ...], scope: Scope, command: Word | None) -> None:
        """A shell variable, or the environment of `command` when there is one."""
        for name, values, array in assignments:
            words = self._expand(values, scope)
            if command is None:
                allowed = may_assign(name)
                scope.variables[name] = words[0] if len(words) == 1 and not array else Open()
            else:
                allowed = may_export(name, words[0]) or (name == "IFS" and command == "read")
            if not allowed:
                raise NotKnown(f"sets {name}, which changes what programs do")

    def _declare(self, node: Declaration, scope: Scope) -> None:
        if node.keyword not in ("export", "local", "readonly", "declare"):
            raise NotKnown(f"`{node.keyword}`")
        names = [flag for flag in node.flags if not flag.startswith("-")]
        if any(flag not in ("-x", "-r", "-a", "-p") for flag in node.flags if flag.startswith("-")):
            raise NotKnown(f"`{node.keyword}` with flags")
        local = node.keyword == "local"
        for name in names:
            if not may_export(name, "") and not (local and may_assign(name)):
                raise NotKnown(f"exports {name}")
        self._assign(node.assignments, scope, None if local else node.keyword)
        self.findings.parts.append(PartOf((node.source,), ""))

    def _test(self, node: Test, scope: Scope) -> None:
        words = self._expand(node.words, scope)
        # Bash evaluates the operands of numeric tests as arithmetic, and arithmetic can run commands.
        if (node.double and _NUMERIC_TESTS.intersection(node.operators)) or "-v" in node.operators:
            plain = (isinstance(word, str) and re.fullmatch(r"-?\d+", word) for word in words)
            if not all(plain):
                raise NotKnown("a numeric test of a value decided only when it runs")
        self.findings.parts.append(PartOf((node.source,), ""))

    def _loop(self, node: Loop, scope: Scope, piped: Printed) -> None:
        inner = scope.copy()
        # A variable that the body changes may have either value on the next pass.
        changed = _assigned(node.body)
        for name in changed:
            inner.variables[name] = Open()
        if node.condition is not None:
            self.script(node.condition, inner, piped)
            self.script(node.body, inner)
        else:
            self._guarded(lambda: self._passes(node, inner), "for")
        for name in changed:
            scope.variables[name] = Open()
        scope.directories = _either(scope.directories, inner.directories)

    def _passes(self, node: Loop, scope: Scope) -> None:
        values = self._expand(node.values, scope)
        if len(values) > _MOST_PASSES:
            values = [Open()]
        start = scope.directories
        for value in values:
            scope.variables[node.variable] = value
            self.script(node.body, scope)
            if scope.directories != start:
                raise NotKnown("a loop that changes the directory")

    def _branch(self, node: Branch, scope: Scope, piped: Printed) -> None:
        self._guarded(lambda: self._expand(node.words, scope), "case")
        reached = scope.directories
        for arm in node.arms:
            inner = scope.copy()
            self.script(arm, inner, piped)
            reached = _either(reached, inner.directories)
            for name, value in inner.variables.items():
                if scope.variables.get(name) != value:
                    scope.variables[name] = Open()
        scope.directories = reached


def _assigned(script: Script) -> set[str]:
    """The variables that a loop's body sets, wherever in it."""
    names: set[str] = set()
    pending: list[object] = [script]
    while pending:
        item = pending.pop()
        if isinstance(item, Assignment):
            names.add(item.name)
        if isinstance(item, Loop):
            names.add(item.variable)
        if isinstance(item, Simple) and item.words[:1] in (("read",), ("mapfile",), ("readarray",)):
            names.update(word for word in item.words[1:] if isinstance(word, str))
        if isinstance(item, tuple):
            pending.extend(item)
    return names


def _either(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    both = tuple(dict.fromkeys(one + other))
    if len(both) > _MOST_DIRECTORIES:
        raise Unreadable("too many directories it might be in")
    return both


def _redirect(operator: str, target: Word, site: Site) -> None:
    if operator in (">&", "<&") and isinstance(target, str) and re.fullmatch(r"\d+|-|\d+-", target):
        return
    if isinstance(target, str) and target.startswith(("/dev/tcp", "/dev/udp")):
        raise NotKnown("a redirection to the network")
    if isinstance(target, Glob):
        raise NotKnown("a redirection to a pattern")
    if isinstance(target, str) and target in QUIET:
        return
    site.touch(EffectKind.READ if operator == "<" else EffectKind.WRITE, target)
