"""`toolreeve secrets`: set, list and remove secrets. No command shows a value."""

import sys

import click

from toolreeve.cli.options import CliGroup, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.core.errors import ExitStatus

ENVIRONMENT = "the environment"


@click.group(cls=CliGroup)
def secrets() -> None:
    """Set, list and remove secrets, which settings and YAML tools refer to as ${secret:NAME}."""


@secrets.command("set")
@click.argument("name")
def set_secret(name: str) -> int:
    """Keep a secret: its value is typed at a prompt, or read from standard input."""
    from toolreeve.core.secrets.store import check_name, check_value

    check_name(name)
    source = current().configuration().secret_source
    store = source.store
    source.keep(name, check_value(_read_value(name)))
    if current().json:
        print_json({"name": name, "store": store.title})
    else:
        print_text(f"{name} is kept in {store.title}; refer to it as ${{secret:{name}}}")
    return ExitStatus.OK


def _read_value(name: str) -> str:
    """Never an argument: those are visible to all processes, and kept in the history of the shell."""
    if sys.stdin.isatty():
        value: str = click.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return value
    piped = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    return piped.removesuffix("\n").removesuffix("\r")


@secrets.command("list")
def list_secrets() -> int:
    """List the names of all secrets, and where each is found."""
    source = current().configuration().secret_source
    note(source.announcement)
    found = [(name, store.title) for store in source.stores() for name in store.list()]
    found += [(name, ENVIRONMENT) for name in source.variables()]
    if current().json:
        rows = [{"name": name, "store": title, "used": _is_first(name, title, found)} for name, title in found]
        print_json({"store": source.store.title, "secrets": rows})
    else:
        rows_shown = [(name, title, "" if _is_first(name, title, found) else "not used") for name, title in found]
        print_table(current(), ("name", "found in", ""), rows_shown)
    return ExitStatus.OK


def _is_first(name: str, title: str, found: list[tuple[str, str]]) -> bool:
    """Of several secrets of one name, the first is used."""
    return next(place for other, place in found if other == name) == title


@secrets.command()
@click.argument("name")
def remove(name: str) -> int:
    """Remove a secret from where it is kept. Environment variables stay."""
    source = current().configuration().secret_source
    removed = [store.title for store in source.stores() if store.remove(name)]
    if current().json:
        print_json({"name": name, "removed": removed})
    elif removed:
        print_text(f"{name} was removed from {' and '.join(removed)}")
    else:
        print_text(f"there is no secret {name}")
    return ExitStatus.OK if removed else ExitStatus.NOT_FOUND
