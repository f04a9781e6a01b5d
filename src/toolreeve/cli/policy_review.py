"""`toolreeve policy simulate|suggest|import`: the policy over time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolreeve.cli.confirm import confirm
from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import count, note, print_json, print_table, print_text
from toolreeve.core.errors import ExitStatus

if TYPE_CHECKING:
    from toolreeve.runtime.policy_review import PolicyReview

T = TypeVar("T")
SHOWN = 20
FORMATS = ("claude-code", "codex", "gemini", "auto-approval")


@click.command(cls=CliCommand)
@click.argument("new", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--since", default="7d", show_default=True, help="How far back: an age such as 12h, or an ISO 8601 time.")
@click.option("--limit", default=SHOWN, show_default=True, type=click.IntRange(0), help="How many calls to list.")
def simulate(new: Path, since: str, limit: int) -> int:
    """Show which recorded calls the policy file NEW would decide differently.

    NEW stands in place of your policy files; mode, lists and the project's policy stay as they are. Nothing runs.
    """
    from toolreeve.policy.files import read_rules

    rules = read_rules(new, root=current().configuration().settings.workspace.dir)
    found = asyncio.run(_with_review(current(), lambda review: review.simulate(rules, since=_moment(since))))
    if current().json:
        print_json(found.to_dict(limit))
        return ExitStatus.OK
    left_out = f", {found.left_out} left out: not recorded whole" if found.left_out else ""
    print_text(
        f"{count(found.total, 'call')} replayed{left_out}; {count(sum(found.by.values()), 'decision')} would change"
    )
    for (before, after), number in found.by.most_common():
        print_text(f"  {before} → {after}: {number}")
    print_text(f"  questions: {found.prompts_before} → {found.prompts_after}")
    rows = [
        (each.call.id[-12:], each.call.tool, _main(each.call.args), each.before.decision.word, each.after.decision.word)
        for each in found.changed[:limit]
    ]
    if rows:
        print_table(current(), ("call", "tool", "", "now", "would be"), rows)
    return ExitStatus.OK


@click.command(cls=CliCommand)
@click.option("--since", default="30d", show_default=True, help="How far back.")
@click.option("--often", default=3, show_default=True, type=click.IntRange(1), help="Approved at least so often.")
@click.option(
    "--write", type=click.IntRange(1), metavar="N", help="Add the Nth rule to your policy file, if confirmed."
)
def suggest(since: str, often: int, write: int | None) -> int:
    """Suggest rules for calls that were approved often: the narrowest that would have covered them."""
    found = asyncio.run(_with_review(current(), lambda review: review.suggest(since=_moment(since), often=often)))
    if write is not None:
        if write > len(found):
            raise click.UsageError(f"there are only {count(len(found), 'suggestion')}")
        return _write(current(), found[write - 1].rule)
    if current().json:
        print_json({"suggestions": [each.to_dict() for each in found]})
        return ExitStatus.OK
    if not found:
        print_text(f"nothing was approved {count(often, 'time')} or more that no rule allows")
    for number, each in enumerate(found, 1):
        print_text(f"{number}. {each.sentence}")
        print_text(f"   {rule_line(each.rule)}")
    if found:
        note("add one with `toolreeve policy suggest --write N`")
    return ExitStatus.OK


def _write(options: Options, rule: Mapping[str, Any]) -> int:
    from toolreeve.runtime.policy_file import append_rule

    configuration = options.configuration()
    files = configuration.settings.policy.files
    path = Path(files[0]) if files else configuration.user_file.with_name("policy.yaml")
    if not asyncio.run(confirm(f"Add this rule to {path}?", shown=rule_line(rule))):
        print_text("nothing was changed")
        return ExitStatus.DENIED
    written = append_rule(path, rule, root=configuration.settings.workspace.dir)
    print_text(f"added: {written.place}")
    return ExitStatus.OK


@click.command("import", cls=CliCommand)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--format", "form", type=click.Choice(FORMATS), help="By default as the name of the file tells.")
def import_policy(file: Path, form: Any) -> int:
    """Print the rules of another program as a policy file, and say what could not be carried over.

    Reads Claude Code's settings.json, Codex's *.rules, Gemini CLI's policies/*.toml and auto_approval_policies.yaml.
    """
    from toolreeve.runtime.policy_review import guess_format, import_rules

    configuration = current().configuration()
    chosen = form or guess_format(file)
    if chosen is None:
        raise click.UsageError(f"say what {file.name} is with --format {'|'.join(FORMATS)}")
    found = import_rules(file, chosen, root=configuration.settings.workspace.dir, home=configuration.home)
    left_out = [{"written": written, "why": why} for written, why in found.left_out]
    if current().json:
        print_json({"rules": found.rules, "left_out": left_out})
        return ExitStatus.OK
    print_text("rules:" if found.rules else "rules: []")
    for rule in found.rules:
        print_text(f"  - {rule_line(rule)}")
    for each in left_out:
        note(f"not carried over: {each['written']}: {each['why']}")
    return ExitStatus.OK


def rule_line(rule: Mapping[str, Any]) -> str:
    from toolreeve.approval.always_rule import rule_text

    return rule_text(rule)


def _main(args: Mapping[str, Any]) -> str:
    main = args.get("command") or args.get("path") or args.get("url") or ""
    return str(main)[:60]


def _moment(since: str) -> float | None:
    from toolreeve.record.audit import Filter

    return Filter.parse({"since": since}).since


async def _with_review(options: Options, run: "Callable[[PolicyReview], Awaitable[T]]") -> T:
    from toolreeve.cli.record import open_audit
    from toolreeve.cli.runtime import find_confinements
    from toolreeve.runtime.policy_review import PolicyReview

    configuration = options.configuration()
    confinements = await find_confinements(configuration)
    async with open_audit(options) as audit:
        if audit is None:
            raise click.UsageError("nothing was recorded yet")
        return await run(PolicyReview(configuration, audit, confinements))
