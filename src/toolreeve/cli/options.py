"""The common options, accepted before or after a command's name.

Nothing heavy is imported here: `toolreeve --help` must stay light.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from toolreeve.config import Configuration

MODES = ("default", "accept_edits", "plan", "strict", "bypass")
SUMMARY = 200
"""Characters of a command's summary in the help of its group."""


class ReaderGone(Exception):
    """The reader closed our output, which is no error. click would catch a BrokenPipeError itself."""


@dataclass(slots=True)
class Options:
    """The values of the common options."""

    workspace: str | None = None
    mode: str | None = None
    json: bool = False
    plain: bool = False
    verbose: bool = False
    loaded: "Configuration | None" = None

    def configuration(self) -> "Configuration":
        """Loads the configuration once, and prints its notices on stderr."""
        if self.loaded is None:
            self.loaded = self._load()
        return self.loaded

    def _load(self) -> "Configuration":
        import logging

        from toolreeve.cli.output import LogNotes, note
        from toolreeve.config import load

        logging.lastResort = LogNotes(logging.WARNING)
        found = load({"workspace.dir": self.workspace, "policy.mode": self.mode}, origin="flag")
        for notice in found.notices:
            note(notice)
        return found


def current() -> Options:
    return click.get_current_context().ensure_object(Options)


def _remember(field: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value:
            setattr(context.ensure_object(Options), field, value)

    return callback


class _Mode(click.Choice[str]):
    """Accepts accept-edits for accept_edits."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(value.replace("-", "_"), param, ctx)


def _flag(*names: str, field: str, description: str) -> click.Option:
    return click.Option(
        names, is_flag=True, expose_value=False, is_eager=True, help=description, callback=_remember(field)
    )


def common_options(*, json: bool = True) -> list[click.Parameter]:
    """New option objects for one command. `call` defines its own `--json`."""
    options: list[click.Parameter] = [
        click.Option(
            ("--workspace",),
            metavar="DIR",
            expose_value=False,
            help="The directory that tools work in.",
            callback=_remember("workspace"),
        ),
        click.Option(
            ("--mode",),
            type=_Mode(MODES),
            expose_value=False,
            help="How much may run without approval.",
            callback=_remember("mode"),
        ),
        _flag("--no-color", field="plain", description="No colors, even on a terminal."),
        _flag("--verbose", "-v", field="verbose", description="Print more details on stderr."),
    ]
    if json:
        options.insert(2, _flag("--json", field="json", description="Print JSON."))
    return options


class CliCommand(click.Command):
    """A command that accepts the common options after its name."""

    own_json = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *common_options(json=not self.own_json)]


class CliGroup(click.Group):
    """A group that suggests the nearest command for an unknown one."""

    command_class = CliCommand

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *common_options()]

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(context, name) is None and not name.startswith("-"):
            raise click.UsageError(self._unknown(context, name), context)
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Whole summaries, on several lines if need be."""
        commands = [(name, self.get_command(context, name)) for name in self.list_commands(context)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, found.get_short_help_str(limit=SUMMARY)) for name, found in commands if found])

    def _unknown(self, context: click.Context, name: str) -> str:
        from toolreeve.core.suggest import did_you_mean, find_similar

        known = self.list_commands(context)
        hint = did_you_mean(find_similar(name, known, limit=1)) or f"known commands: {', '.join(known)}"
        return f"no such command {name!r}; {hint}"


def on_terminal() -> bool:
    return sys.stdout.isatty()
