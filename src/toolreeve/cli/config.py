"""`toolreeve config`: effective settings and origins, JSON Schema, file paths."""

import click

from toolreeve.cli.options import CliGroup, current
from toolreeve.cli.output import print_json, print_table, print_text
from toolreeve.core import json


@click.group(cls=CliGroup)
def config() -> None:
    """Show the configuration, its schema and its files."""


@config.command()
def show() -> None:
    """Show the effective settings and the origin of each."""
    from toolreeve.config.fields import setting_fields, value_at

    found = current().configuration()
    values = {setting.key: setting.shown(value_at(found.settings, path)) for path, setting in setting_fields().items()}
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


@config.command()
def path() -> None:
    """Show the paths of configuration and state."""
    from pathlib import Path

    from toolreeve.config.xdg import DATABASE

    found = current().configuration()
    state = Path(found.settings.state.dir)
    paths = {"user": found.user_file, "project": found.project_file, "state": state, "database": state / DATABASE}
    if current().json:
        print_json({name: {"path": str(path), "exists": path.exists()} for name, path in paths.items()})
        return
    rows = [(name, str(path), "exists" if path.exists() else "missing") for name, path in paths.items()]
    print_table(current(), ("what", "path", "state"), rows)
