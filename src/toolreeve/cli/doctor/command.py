"""Does this installation do what it says? What the machine offers, what is configured, and every control, tried out.

A control counts as active only when a probe against the real part was refused as it should be.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from toolreeve.cli.doctor.checks import Check, Status
from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import say, say_json, say_table
from toolreeve.core.errors import ExitStatus, ToolError, ToolreeveError

if TYPE_CHECKING:
    from toolreeve.config import Configuration


@click.command(cls=CliCommand)
@click.option("--fix", is_flag=True, help="Create missing directories and set their permissions.")
def doctor(*, fix: bool) -> int:
    """Show what is enforced here, what is not, and how to mend it."""
    checks = list(_examine(current(), fix=fix))
    failed = [check for check in checks if check.status is Status.FAIL]
    if current().json:
        say_json({"ok": not failed, "checks": [check.to_dict() for check in checks]})
    else:
        rows = [(check.area, check.name, check.status.value, check.found) for check in checks]
        say_table(current(), ("area", "what", "state", "found"), rows)
        for check in checks:
            if check.fix:
                say(f"{check.name}: {check.fix}")
        say("all required is in place" if not failed else f"{len(failed)} of {len(checks)} checks failed")
    return ExitStatus.TOOL_ERROR if failed else ExitStatus.OK


def _examine(invocation: Options, *, fix: bool) -> Iterator[Check]:
    from toolreeve.cli.doctor import checks, controls

    yield from checks.machine()
    try:
        found = invocation.configuration()
    except ToolreeveError as problem:
        yield Check("configuration", "files", Status.FAIL, str(problem), fix="mend what is named, then run this again")
        return
    yield from checks.configuration(found)
    yield from checks.places(found, fix=fix)
    yield from _guarded(controls.EXAMINATIONS, invocation, found)


def _guarded(
    examinations: "Sequence[Callable[[Options, Configuration], Iterator[Check]]]",
    invocation: Options,
    found: "Configuration",
) -> Iterator[Check]:
    """A probe that fails says so; the others are made all the same."""
    for examine in examinations:
        try:
            yield from examine(invocation, found)
        except (ToolreeveError, ToolError, OSError) as problem:
            yield Check("control", examine.__name__, Status.FAIL, f"{type(problem).__name__}: {problem}")
