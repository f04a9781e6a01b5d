"""`toolreeve policy`: check policy files, explain decisions, run test cases."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.arguments import BadArgument, parse_pairs, read_text
from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import count, print_json, print_table, print_text
from toolreeve.cli.policy_review import import_policy, simulate, suggest
from toolreeve.cli.suggestions import complete_arguments, complete_tools
from toolreeve.core import json
from toolreeve.core.errors import ConfigError, ConfigErrors, ExitStatus
from toolreeve.core.trial import Confinement

if TYPE_CHECKING:
    from toolreeve.cli.policy_cases import Case, CaseOutcome
    from toolreeve.config import Configuration
    from toolreeve.policy.explanation import Explanation


@click.group(cls=CliGroup)
def policy() -> None:
    """Check, explain, test, simulate, import and suggest policy rules."""


@policy.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--project", is_flag=True, help="Check the files as a project's, which may only tighten.")
def check(files: tuple[Path, ...], *, project: bool) -> int:
    """Check policy files and their examples: the configured ones, or those named."""
    reports, status = _check_files(dict.fromkeys(files, project) or _configured(current().configuration()))
    if not reports and not current().json:
        print_text("no policy files: mode and tool lists decide")
    if current().json:
        print_json({"ok": status == ExitStatus.OK, "files": reports})
    return status


def _configured(found: "Configuration") -> dict[Path, bool]:
    """The configured files, each with whether it may only tighten."""
    files = {Path(name): False for name in found.settings.policy.files}
    return files if found.project_policy is None else {**files, found.project_policy: True}


def _check_files(files: Mapping[Path, bool]) -> tuple[list[dict[str, Any]], int]:
    """The report on each file, printed unless JSON is wanted, and the exit status."""
    root = current().configuration().settings.workspace.dir
    reports = [_check_file(path, root, tighten_only=tighten_only) for path, tighten_only in files.items()]
    for report in () if current().json else reports:
        _print_report(report)
    return reports, ExitStatus.TOOL_ERROR if any(report["problems"] for report in reports) else ExitStatus.OK


def _check_file(path: Path, root: str, *, tighten_only: bool) -> dict[str, Any]:
    from toolreeve.policy.files import read_rules

    report: dict[str, Any] = {"file": str(path), "rules": 0, "problems": []}
    try:
        rules = read_rules(path, root=root, tighten_only=tighten_only, now=time.time())
    except ConfigErrors as problems:
        return report | {"problems": list(map(_as_dict, problems.problems))}
    return report | {"rules": len(rules)}


def _as_dict(problem: ConfigError) -> dict[str, Any]:
    return {"line": problem.line, "key": problem.key, "problem": problem.problem, "fix": problem.fix}


def _print_report(report: dict[str, Any]) -> None:
    if not report["problems"]:
        print_text(f"{report['file']}: {count(report['rules'], 'rule')}, valid")
    for problem in report["problems"]:
        location = f"{report['file']}:{problem['line']}" if problem["line"] else report["file"]
        key = f"{problem['key']}: " if problem["key"] else ""
        print_text(f"{location}: {key}{problem['problem']}")
        if problem["fix"]:
            print_text(f"  fix: {problem['fix']}")


@policy.command()
@click.argument("tool", shell_complete=complete_tools)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_arguments)
@click.option("--cost", type=float, default=0.0, help="The estimated cost of the call in dollars.")
def explain(tool: str, pairs: tuple[str, ...], cost: float) -> int:
    """Explain the decision about a call: which layer decides, and what would change it."""
    explanation = asyncio.run(_explain(current(), tool, pairs, cost))
    if current().json:
        print_json({"tool": tool, **explanation.to_dict()})
        return ExitStatus.OK
    verdict = explanation.verdict
    print_text(f"{explanation.decision.word}: {verdict.reason or 'no reason given'}")
    print_text(
        f"  decided by {verdict.layer}" + (f", rule {verdict.rule!r} ({explanation.place})" if verdict.rule else "")
    )
    _print_rationale(explanation)
    if verdict.runs is not Confinement.WORK:
        print_text(f"  runs: {verdict.runs}; asks afterwards: {explanation.asks_after}")
    if verdict.change:
        print_text(f"  to change it: {verdict.change}")
    for offer in explanation.wider:
        print_text(f"  or, for {offer.sentence}: {json.dumps(dict(offer.rule)).decode()}")
    rows = [
        (answer.layer, answer.verdict.decision.word if answer.verdict else "-", _reason(answer.verdict))
        for answer in explanation.answers
    ]
    print_table(current(), ("layer", "answer", "reason"), rows)
    return ExitStatus.OK


def _print_rationale(explanation: "Explanation") -> None:
    """The tool's own assessment of the call: for a command, of each of its parts."""
    if explanation.grounds.reason:
        print_text(f"  {explanation.danger.value}: {explanation.grounds.reason}")
    for part, why in explanation.grounds.parts:
        print_text(f"    {part}: " + (f"not known: {why}" if why else "known"))


def _reason(verdict: Any) -> str:
    return "" if verdict is None else str(verdict.reason)


async def _explain(options: Options, tool: str, pairs: Sequence[str], cost: float) -> "Explanation":
    from toolreeve.cli.runtime import find_confinements, runtime_with

    async with runtime_with(options, [tool]) as runtime:
        if runtime.tools.resolve(tool).spec.confinable:
            runtime.internals.policy.enforce(await find_confinements(options.configuration()))
        try:
            args = parse_pairs(pairs, runtime.tools.resolve(tool).spec.input, read_text)
        except BadArgument as problem:
            raise click.UsageError(str(problem)) from None
        return runtime.explain(tool, args, estimated_cost=cost)


policy.add_command(simulate)
policy.add_command(suggest)
policy.add_command(import_policy)


@policy.command()
@click.argument("cases", nargs=-1, type=click.Path(path_type=Path), metavar="[CASES]...")
def test(cases: tuple[Path, ...]) -> int:
    """Test the policy: the examples of its rules, or CASES against all of it.

    CASES is a YAML list of {tool, args, expect: allow | ask | deny}.
    """
    return _test_cases(cases) if cases else _test_examples()


def _test_examples() -> int:
    from toolreeve.cli.policy_cases import count_examples

    files = _configured(current().configuration())
    reports, status = _check_files(files)
    examples = sum(map(count_examples, files))
    if current().json:
        print_json({"ok": status == ExitStatus.OK, "examples": examples, "files": reports})
    else:
        summary = f"{count(examples, 'example')} in {count(len(files), 'file')}"
        print_text(f"{summary}, all passed" if status == ExitStatus.OK else summary)
    return status


async def _try_all(options: Options, cases: "Sequence[Case]") -> "list[CaseOutcome]":
    from toolreeve.cli.policy_cases import try_case
    from toolreeve.cli.runtime import runtime_with

    async with runtime_with(options, {case.tool for case in cases}) as runtime:
        return [try_case(runtime, case) for case in cases]


def _test_cases(paths: Sequence[Path]) -> int:
    from toolreeve.cli.policy_cases import read_cases

    outcomes = asyncio.run(_try_all(current(), [case for path in paths for case in read_cases(path)]))
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if current().json:
        print_json({"ok": not failed, "cases": [outcome.to_dict() for outcome in outcomes]})
    else:
        for outcome in failed:
            print_text(
                f"{outcome.case.location}: expected {outcome.case.expect}, got {outcome.answer}: {outcome.reason}"
            )
        print_text(f"{len(outcomes) - len(failed)} of {count(len(outcomes), 'case')} passed")
    return ExitStatus.TOOL_ERROR if failed else ExitStatus.OK
