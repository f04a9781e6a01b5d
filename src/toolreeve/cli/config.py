"""What is configured? The effective values with their origins, the schema, and where the files are."""

import click

from toolreeve.cli.options import CliGroup, current
from toolreeve.cli.output import say, say_json, say_table
from toolreeve.core import json


@click.group(cls=CliGroup)
def config() -> None:
    """Show the configuration, its schema and its files."""


@config.command()
def show() -> None:
    """Show the effective settings, and where each comes from."""
    from toolreeve.config.fields import setting_fields, value_at

    found = current().configuration()
    values = {setting.key: setting.shown(value_at(found.settings, path)) for path, setting in setting_fields().items()}
    if current().json:
        say_json({key: {"value": value, "origin": found.origins[key]} for key, value in values.items()})
        return
    rows = [(key, json.dumps(value).decode(), found.origins[key]) for key, value in values.items()]
    say_table(current(), ("key", "value", "origin"), rows)


@config.command()
def schema() -> None:
    """Print the JSON Schema of toolreeve.toml, for editors."""
    from toolreeve.config.fields import json_schema

    say(json.pretty(json_schema()))


@config.command()
def path() -> None:
    """Say where configuration and state are looked for."""
    from pathlib import Path

    from toolreeve.config.xdg import DATABASE

    found = current().configuration()
    state = Path(found.settings.state.dir)
    places = {"user": found.user_file, "project": found.project_file, "state": state, "database": state / DATABASE}
    if current().json:
        say_json({name: {"path": str(place), "exists": place.exists()} for name, place in places.items()})
        return
    rows = [(name, str(place), "exists" if place.exists() else "not there") for name, place in places.items()]
    say_table(current(), ("what", "path", "state"), rows)
