"""`toolreeve config`: effective settings and origins, JSON Schema, file paths."""

from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliGroup, current
from toolreeve.cli.output import print_json, print_table, print_text
from toolreeve.core import json

if TYPE_CHECKING:
    from pathlib import Path


@click.group(cls=CliGroup)
def config() -> None:
    """Show the configuration, its schema and its files."""


@config.command()
def show() -> None:
    """Show the effective settings and the origin of each."""
    from toolreeve.config.fields import setting_fields, value_at
    from toolreeve.core.secrets.redactor import Redactor

    found = current().configuration()
    redact = Redactor(found.secrets).value
    fields = setting_fields()
    values = {each.key: redact(each.shown(value_at(found.settings, path))) for path, each in fields.items()}
    if current().json:
        print_json({key: {"value": value, "origin": found.origins[key]} for key, value in values.items()})
        return
    rows = [(key, json.dumps(value).decode(), found.origins[key]) for key, value in values.items()]
    print_table(current(), ("key", "value", "origin"), rows)


@config.command()
def schema() -> None:
    """Print the JSON Schema of toolreeve.toml, for editors."""
    from toolreeve.config.fields import json_schema

    print_text(json.pretty(json_schema()))


def _paths() -> "dict[str, Path]":
    from pathlib import Path

    from toolreeve.config.xdg import DATABASE

    found = current().configuration()
    state = Path(found.settings.state.dir)
    return {"user": found.user_file, "project": found.project_file, "state": state, "database": state / DATABASE}


def _default_paths(workspace: str | None) -> "dict[str, Path]":
    """Without the configuration, which could set other ones."""
    import os
    from pathlib import Path

    from toolreeve.config import xdg

    state = xdg.state_home(os.environ)
    return {
        "user": xdg.config_home(os.environ) / xdg.FILE,
        "project": Path(workspace or ".").resolve() / xdg.FILE,
        "state": state,
        "database": state / xdg.DATABASE,
    }


@config.command()
def path() -> None:
    """Show the paths of configuration and state, also while a file has errors."""
    from toolreeve.cli.output import note
    from toolreeve.core.errors import ToolreeveError

    try:
        paths = _paths()
    except ToolreeveError as problem:
        note(str(problem))
        paths = _default_paths(current().workspace)
    if current().json:
        print_json({name: {"path": str(path), "exists": path.exists()} for name, path in paths.items()})
        return
    rows = [(name, str(path), "exists" if path.exists() else "missing") for name, path in paths.items()]
    print_table(current(), ("what", "path", "state"), rows)
