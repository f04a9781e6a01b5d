"""Command-line entry point: lazily imported commands and exit codes.

Only results go to stdout; notes about them go to stderr. `toolreeve --help` imports no command.
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
    "doctor": ("toolreeve.cli.doctor.command:doctor", "Check what is enforced here, what is not, and how to fix it."),
    "demo": ("toolreeve.cli.demo.command:demo", "Watch a scripted agent work, be asked and be refused."),
    "tools": ("toolreeve.cli.tools:tools", "List the tools, or show one."),
    "call": ("toolreeve.cli.call:call", "Call a tool."),
    "explain": ("toolreeve.cli.explain:explain", "Explain what would be decided, without doing it."),
    "agent": ("toolreeve.cli.agent:agent", "Run an agent that acts through the tools."),
    "acp": ("toolreeve.cli.acp:acp", "Serve our agent to editors over ACP, or run ACP agents."),
    "mcp": ("toolreeve.cli.mcp:mcp", "Serve the tools to an MCP client over stdin and stdout."),
    "servers": ("toolreeve.cli.servers:servers", "List, show, test, accept and log in to MCP servers."),
    "audit": ("toolreeve.cli.audit:audit", "Read, export and verify the record of calls."),
    "approvals": ("toolreeve.cli.approvals:approvals", "List and answer pending approvals."),
    "quarantine": ("toolreeve.cli.quarantine:quarantine", "List, show, release and delete quarantined files."),
    "undo": ("toolreeve.cli.undo:undo", "Undo the file changes of a call or a session."),
    "policy": ("toolreeve.cli.policy:policy", "Check, explain, test, simulate, import and suggest policy rules."),
    "config": ("toolreeve.cli.config:config", "Show the configuration, its schema and its files."),
    "adopt": ("toolreeve.cli.adopt:adopt", "Adopt the MCP servers of other clients."),
    "hook": ("toolreeve.cli.hooks:hook", "Answer one hook event of an agent client."),
    "hooks": ("toolreeve.cli.hooks:hooks", "Install, remove and show hooks for the own tools of agent clients."),
    "secrets": ("toolreeve.cli.secrets:secrets", "Set, list and remove secrets."),
    "auth": ("toolreeve.cli.auth:auth", "Connect, show and disconnect the accounts of connectors."),
    "whoami": ("toolreeve.cli.whoami:whoami", "Show who calls are made as, with which role, and why."),
    "labels": ("toolreeve.cli.labels:labels", "Vouch for values in a session, and manage known recipients."),
    "trust": ("toolreeve.cli.trust:trust", "Trust the workspace, so that its tools and servers may run."),
    "serve": ("toolreeve.cli.serve:serve", "Serve the console, REST, MCP and metrics over HTTP."),
    "state": ("toolreeve.cli.state:state", "Show where the state is kept; move it to PostgreSQL."),
    "tokens": ("toolreeve.cli.tokens:tokens", "Add, list and revoke tokens of the HTTP server."),
    "worker": ("toolreeve.cli.worker:worker", "Run the calls of a pool for gateways on other machines."),
    "workers": ("toolreeve.cli.workers:workers", "List the workers; make keys and the configuration of NATS."),
    "completion": ("toolreeve.cli.completion:completion", "Print the completion script of a shell."),
}
COMPLETE = "_TOOLREEVE_COMPLETE"
INTERRUPTED = 130
BROKEN_PIPE = 141

EXIT_CODES = """\b
Exit codes:
  0    success
  1    the tool failed, or a check found a problem
  2    usage error: arguments or configuration
  3    denied by the policy, a guard or a person
  4    timeout: the call took too long, or approval came too late
  5    not found: no such tool or record
  6    unavailable: server down or circuit breaker open
  7    the record was tampered with, or its witness cannot be trusted
  8    acknowledged records are missing from the end of the record
  130  interrupted
"""


class LazyGroup(CliGroup):
    """The commands of `COMMANDS`, each imported on use."""

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
        from toolreeve.core.version import VERSION

        click.echo(f"toolreeve {VERSION}")
        context.exit()


@click.group(cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["--help", "-h"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, help="Print the version.", callback=_print_version
)
def toolreeve() -> None:
    """The tool runtime for AI agents: every call is decided, approved, confined and recorded."""


def main(args: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    options = Options()
    if COMPLETE in os.environ:
        importlib.import_module("toolreeve.cli.suggestions")  # registers the completion of the shells
    try:
        status = toolreeve.main(args, prog_name="toolreeve", standalone_mode=False, obj=options)
        sys.stdout.flush()
    except (BrokenPipeError, ReaderGone):
        _redirect_stdout()
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        from toolreeve.cli.output import note

        note("interrupted")
        return INTERRUPTED
    except Exception as problem:
        from toolreeve.cli.output import report

        return report(problem, options)
    return status if isinstance(status, int) else 0


def _redirect_stdout() -> None:
    """The reader of stdout is gone: flushing the rest of the buffer must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
