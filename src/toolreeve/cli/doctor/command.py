"""The `doctor` command: checks the machine, the configuration and every control.

A control counts as active only if a probe of the real component was refused.
"""

from collections.abc import Iterator

import click

from toolreeve.cli.doctor.checks import Check, Status
from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import print_json, print_table, print_text
from toolreeve.core.errors import ExitStatus, ToolError, ToolreeveError


@click.command(cls=CliCommand)
@click.option("--fix", is_flag=True, help="Create missing directories and set their permissions.")
def doctor(*, fix: bool) -> int:
    """Check what is enforced here, what is not, and how to fix it."""
    checks = list(run_checks(current(), fix=fix))
    failed = [check for check in checks if check.status is Status.FAIL]
    if current().json:
        print_json({"ok": not failed, "checks": [check.to_dict() for check in checks]})
    else:
        rows = [(check.area, check.name, check.status.value, check.found) for check in checks]
        print_table(current(), ("area", "check", "status", "found"), rows)
        for check in checks:
            if check.fix:
                print_text(f"fix {check.name}: {check.fix}")
        print_text(f"{len(failed)} of {len(checks)} checks failed" if failed else "no check failed")
    return ExitStatus.TOOL_ERROR if failed else ExitStatus.OK


def run_checks(options: Options, *, fix: bool) -> Iterator[Check]:
    from toolreeve.cli.doctor import checks, controls

    yield from checks.check_machine()
    try:
        found = options.configuration()
    except ToolreeveError as problem:
        yield Check("configuration", "files", Status.FAIL, str(problem), fix="correct the file, then run this again")
        return
    yield from checks.check_configuration(found)
    yield from checks.check_secrets(found)
    yield from checks.check_directories(found, fix=fix)
    yield from checks.check_toolchains(found)
    for name, check_control in controls.CONTROLS.items():
        try:
            yield from check_control(options, found)
        except (ToolreeveError, ToolError, OSError) as problem:
            yield Check("control", name, Status.FAIL, str(problem))
