"""Entry point of the command line: lazy commands, exit statuses.

Only the answer goes to stdout; what is said about it goes to stderr. `toolreeve --help` imports no command.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from toolreeve.cli.options import CliGroup, Options, ReaderGone

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("toolreeve.cli.init:init", "Write a commented toolreeve.toml into the workspace."),
    "doctor": ("toolreeve.cli.doctor.command:doctor", "Show what is enforced here, what is not, and how to mend it."),
    "tools": ("toolreeve.cli.tools:tools", "List the tools, or show one of them."),
    "call": ("toolreeve.cli.call:call", "Call a tool."),
    "explain": ("toolreeve.cli.explain:explain", "Say what would be decided, without doing it."),
    "mcp": ("toolreeve.cli.mcp:mcp", "Serve the tools to an MCP client over stdin and stdout."),
    "servers": ("toolreeve.cli.servers:servers", "List, show, test and accept the MCP servers behind us."),
    "audit": ("toolreeve.cli.audit:audit", "Read, export and verify the record of calls."),
    "approvals": ("toolreeve.cli.approvals:approvals", "Answer what waits for a person."),
    "quarantine": ("toolreeve.cli.quarantine:quarantine", "See and release what commands left for the host to obey."),
    "undo": ("toolreeve.cli.undo:undo", "Take back the file changes of a call or a session."),
    "policy": ("toolreeve.cli.policy:policy", "Check, explain and test policy files."),
    "config": ("toolreeve.cli.config:config", "Show the configuration, its schema and its files."),
    "adopt": ("toolreeve.cli.adopt:adopt", "Take over the MCP servers of other clients."),
    "trust": ("toolreeve.cli.trust:trust", "Let the workspace's own tools run."),
    "serve": ("toolreeve.cli.serve:serve", "Serve the tools over HTTP."),
    "completion": ("toolreeve.cli.completion:completion", "Print a shell's completion script."),
}
INTERRUPTED = 130
BROKEN_PIPE = 141

EXIT_CODES = """\b
Exit codes:
  0    done
  1    the tool failed, or a check found something wrong
  2    bad usage: arguments, configuration
  3    denied by policy, guard or a person
  4    took too long, or nobody answered in time
  5    no such tool or record
  6    a part that is needed is away or resting
  7    the record was tampered with, or its witness is not to be believed
  8    acknowledged records are missing from the end of the record
  130  interrupted
"""


class LazyGroup(CliGroup):
    """The commands of `COMMANDS`, each imported when it is asked for."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def shell_complete(self, context: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(context, incomplete)
        return [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]


def _print_version(context: click.Context, _: click.Parameter, value: Any) -> None:
    if value and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"toolreeve {version('toolreeve')}")
        context.exit()


@click.group(cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["--help", "-h"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, help="Print the version.", callback=_print_version
)
def toolreeve() -> None:
    """The tool runtime for AI agents: every call travels one road, confined, decided, approved and recorded."""


def main(args: list[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    invocation = Options()
    try:
        status = toolreeve.main(args, prog_name="toolreeve", standalone_mode=False, obj=invocation)
        sys.stdout.flush()
    except (BrokenPipeError, ReaderGone):
        _forget_stdout()
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as problem:
        from toolreeve.cli.output import report

        return report(problem, invocation)
    return status if isinstance(status, int) else 0


def _forget_stdout() -> None:
    """Whoever read stdout has gone; what is left in the buffer must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
