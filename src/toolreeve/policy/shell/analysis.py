"""Analysis of shell commands: effects, danger and what is unknown.

Pure: no file is looked at, nothing runs. A command is known only if every simple command in it is.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.shell.confinable import Confinable, changes, find_network_use, grade
from toolreeve.policy.shell.danger import assess
from toolreeve.policy.shell.interpret.findings import Alarm, CommandPart
from toolreeve.policy.shell.interpret.interpreter import ShellInterpreter
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.parse import grammar
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import ShellPipeline, ShellScript, Simple, Step
from toolreeve.policy.shell.programs.arguments import NotKnown


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """`danger` and `reason` follow from the effects, the alarms and the unknown parts. `kept` are effects on files that
    a program keeps for itself. `confinable` is the tightest confinement in which it can run, `network` what it cannot
    do without one. `home`, `root`, `allowed` and `cwd` are as they were given. `script` is the parsed command."""

    command: str
    parts: tuple[CommandPart, ...]
    effects: tuple[Effect, ...]
    danger: DangerLevel
    reason: str
    alarms: tuple[Alarm, ...]
    kept: frozenset[Effect]
    confinable: Confinable
    network: str
    home: str
    root: str
    allowed: tuple[str, ...] = ()
    cwd: str = "/"
    script: ShellScript = field(default=ShellScript(()), compare=False, repr=False)
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def known(self) -> bool:
        return all(part.known for part in self.parts)

    @property
    def changes(self) -> tuple[Effect, ...]:
        """The files that it is known to change where it runs confined, besides those in `kept`."""
        return changes(self.effects, self.kept, home=self.home, root=self.root)


def analysis_of(action: Action) -> Analysis | None:
    """The analysis of the command that the call runs; None for a call that runs none, or one that is not analysed."""
    found = action.tool.grounds(action.args).analysis if action.tool.grounds else None
    return found if isinstance(found, Analysis) else None


def decide_default(analysis: Analysis) -> Verdict:
    """The shipped default: what is known and at most LOW runs, everything else needs approval."""
    if analysis.known and analysis.danger <= DangerLevel.LOW:
        return Verdict(Decision.ALLOW, layer="shell", reason=analysis.reason)
    return Verdict(Decision.ASK, layer="shell", reason=analysis.reason)


def analyse(command: str, *, cwd: str, home: str, root: str, allowed: Sequence[str] = ()) -> Analysis:
    """`cwd`, `home` and `root` (the workspace) are absolute, normal paths; `allowed` is `workspace.sensitive_allow`."""
    return _analyse(command, grammar.parse(command), ShellScope((cwd,), home, root), allowed)


def analyse_script(script: ShellScript, whole: Analysis) -> Analysis:
    """A part of an analysed command by itself, where the command starts."""
    scope = ShellScope((whole.cwd,), whole.home, whole.root)
    return _analyse(whole.command, script, scope, whole.allowed)


def analyse_programs(
    pipelines: Iterable[Iterable[tuple[str, ...]]], *, cwd: str, home: str, root: str, allowed: Sequence[str] = ()
) -> Analysis:
    """The same for programs started without a shell: pipelines, each run after the one before it succeeded."""
    lists = [[Simple(argv, source=shlex.join(argv)) for argv in pipeline] for pipeline in pipelines]
    steps = tuple(Step(ShellPipeline(tuple(stages)), "&&") for stages in lists)
    command = " && ".join(" | ".join(stage.source for stage in stages) for stages in lists)
    return _analyse(command, ShellScript(steps), ShellScope((cwd,), home, root), allowed)


def _analyse(command: str, script: ShellScript, scope: ShellScope, allowed: Sequence[str]) -> Analysis:
    cwd = scope.directories[0]
    interpreter = ShellInterpreter(command)
    found = interpreter.findings
    try:
        interpreter.script(script, scope)
    except (NotKnown, Unreadable) as problem:
        found.parts.append(CommandPart((command,), str(problem)))
    except RecursionError:
        found.parts.append(CommandPart((command,), "nested too deeply"))
    if not found.parts:
        found.parts.append(CommandPart((), "" if command.strip() else "an empty command"))
    danger, reason = assess(found, home=scope.home, root=scope.root, allowed=allowed)
    return Analysis(
        command=command,
        parts=tuple(found.parts),
        effects=tuple(dict.fromkeys(found.effects)),
        danger=danger,
        reason=reason,
        alarms=tuple(found.alarms),
        kept=frozenset(found.kept),
        confinable=grade(found, (danger, reason), home=scope.home, root=scope.root, allowed=allowed),
        network=find_network_use(found),
        home=scope.home,
        root=scope.root,
        allowed=tuple(allowed),
        cwd=cwd,
        script=script,
    )
