"""Are the policy files right, what do they decide, and do they do what their authors think?"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.arguments import BadArgument, parse_pairs, read_text
from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import say, say_json, say_table
from toolreeve.core.errors import ConfigError, ConfigErrors, ExitStatus

if TYPE_CHECKING:
    from toolreeve.cli.policy_cases import Case, CaseOutcome
    from toolreeve.config import Configuration
    from toolreeve.policy.explanation import Explanation
    from toolreeve.runtime.toolreeve import Toolreeve


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    path: Path
    tighten_only: bool


@click.group(cls=CliGroup)
def policy() -> None:
    """Check, explain and test policy files."""


@policy.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--project", is_flag=True, help="Judge the files as a project's own, which may only tighten.")
def check(files: tuple[Path, ...], *, project: bool) -> int:
    """Check policy files: yours and the project's, or those named. Their examples are tried as well."""
    named = [PolicyFile(path=path, tighten_only=project) for path in files]
    found = current().configuration()
    answers = [_checked(each, found) for each in named or _configured(found)]
    if current().json:
        say_json({"ok": all(not answer["problems"] for answer in answers), "files": answers})
    else:
        for answer in answers:
            _tell(answer)
        if not answers:
            say("no policy file is configured: the mode and the lists alone decide")
    return ExitStatus.TOOL_ERROR if any(answer["problems"] for answer in answers) else ExitStatus.OK


def _configured(found: "Configuration") -> Iterator[PolicyFile]:
    for name in found.settings.policy.files:
        yield PolicyFile(path=Path(name), tighten_only=False)
    if found.project_policy is not None:
        yield PolicyFile(path=found.project_policy, tighten_only=True)


def _checked(file: PolicyFile, found: "Configuration") -> dict[str, Any]:
    from toolreeve.policy.files import read_rules

    answer: dict[str, Any] = {"file": str(file.path), "rules": 0, "problems": []}
    try:
        rules = read_rules(
            file.path, root=found.settings.workspace.dir, tighten_only=file.tighten_only, now=time.time()
        )
    except ConfigErrors as problems:
        return answer | {"problems": list(map(_as_dict, problems.problems))}
    return answer | {"rules": len(rules)}


def _as_dict(problem: ConfigError) -> dict[str, Any]:
    return {"line": problem.line, "key": problem.key, "problem": problem.problem, "fix": problem.fix}


def _tell(answer: dict[str, Any]) -> None:
    if not answer["problems"]:
        say(f"{answer['file']}: {answer['rules']} rules, all right")
    for problem in answer["problems"]:
        place = f"{answer['file']}:{problem['line']}" if problem["line"] else answer["file"]
        key = f"{problem['key']}: " if problem["key"] else ""
        say(f"{place}: {key}{problem['problem']}" + (f"\n  fix: {problem['fix']}" if problem["fix"] else ""))


@policy.command()
@click.argument("tool")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--cost", type=float, default=0.0, help="Dollars that the call would cost.")
def explain(tool: str, pairs: tuple[str, ...], cost: float) -> int:
    """Say what would be decided about a call, by which layer, and what would change it."""
    explanation = asyncio.run(_explained(current(), tool, pairs, cost))
    if current().json:
        say_json({"tool": tool, **explanation.to_dict()})
        return ExitStatus.OK
    verdict = explanation.verdict
    say(f"{verdict.decision.word}: {verdict.reason or 'no reason given'}")
    say(f"  decided by {verdict.layer}" + (f", rule {verdict.rule!r} ({explanation.place})" if verdict.rule else ""))
    _say_grounds(explanation)
    if verdict.change:
        say(f"  to change it: {verdict.change}")
    rows = [
        (answer.layer, answer.verdict.decision.word if answer.verdict else "-", _reason(answer.verdict))
        for answer in explanation.answers
    ]
    say_table(current(), ("layer", "answer", "reason"), rows)
    return ExitStatus.OK


def _say_grounds(explanation: "Explanation") -> None:
    """What the tool itself knows of the call: of a command, every part of it."""
    if explanation.grounds.reason:
        say(f"  {explanation.danger.value}: {explanation.grounds.reason}")
    for part, why in explanation.grounds.parts:
        say(f"    {part}: " + (f"not known: {why}" if why else "known"))


def _reason(verdict: Any) -> str:
    return "" if verdict is None else str(verdict.reason)


async def _explained(invocation: Options, tool: str, pairs: Sequence[str], cost: float) -> "Explanation":
    from toolreeve.cli.runtime import knowing

    async with knowing(invocation, [tool]) as runtime:
        return _explanation(runtime, tool, pairs, cost)


def _explanation(runtime: "Toolreeve", tool: str, pairs: Sequence[str], cost: float) -> "Explanation":
    known = runtime.tools.resolve(tool)
    try:
        args = parse_pairs(pairs, known.spec.input, read_text)
    except BadArgument as problem:
        raise click.UsageError(str(problem)) from None
    return runtime.explain(tool, args, estimated_cost=cost)


@policy.command()
@click.argument("cases", nargs=-1, type=click.Path(path_type=Path), metavar="[CASES]...")
def test(cases: tuple[Path, ...]) -> int:
    """Try calls against the policy: the examples of its rules, or CASES against the whole of it.

    CASES is a YAML list of {tool, args, expect: allow | ask | deny}.
    """
    return _try_cases(cases) if cases else _try_examples()


def _try_examples() -> int:
    from toolreeve.cli.policy_cases import count_examples

    found = current().configuration()
    files = list(_configured(found))
    answers = [_checked(file, found) for file in files]
    problems = [problem for answer in answers for problem in answer["problems"]]
    examples = sum(count_examples(file.path) for file in files)
    if current().json:
        say_json({"ok": not problems, "examples": examples, "files": answers})
    else:
        for answer in answers:
            _tell(answer)
        say(f"{examples} examples in {len(files)} files" + ("" if problems else ", all as their rules say"))
    return ExitStatus.TOOL_ERROR if problems else ExitStatus.OK


async def _tried(invocation: Options, cases: "Sequence[Case]") -> "list[CaseOutcome]":
    from toolreeve.cli.policy_cases import try_case
    from toolreeve.cli.runtime import knowing

    async with knowing(invocation, {case.tool for case in cases}) as runtime:
        return [try_case(runtime, case) for case in cases]


def _try_cases(paths: Sequence[Path]) -> int:
    from toolreeve.cli.policy_cases import read_cases

    outcomes = asyncio.run(_tried(current(), [case for path in paths for case in read_cases(path)]))
    wrong = [outcome for outcome in outcomes if not outcome.right]
    if current().json:
        say_json({"ok": not wrong, "cases": [outcome.to_dict() for outcome in outcomes]})
    else:
        for outcome in wrong:
            say(f"{outcome.case.place}: expected {outcome.case.expect}, got {outcome.answer}: {outcome.reason}")
        say(f"{len(outcomes) - len(wrong)} of {len(outcomes)} cases as expected")
    return ExitStatus.TOOL_ERROR if wrong else ExitStatus.OK
