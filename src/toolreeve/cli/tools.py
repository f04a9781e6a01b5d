"""`toolreeve tools`: the list of tools, or one with its parameters."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import count, live_line, note, print_json, print_table, print_text
from toolreeve.cli.suggestions import complete_tools
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line, visible

if TYPE_CHECKING:
    from toolreeve.connectors.catalogue import UnavailableTool
    from toolreeve.core.tool import ToolSpec
    from toolreeve.runtime.toolreeve import Toolreeve

PROVIDERS = ("openai", "openai_responses", "anthropic", "ollama", "mcp", "gemini")


@click.command(cls=CliCommand)
@click.argument("name", required=False, shell_complete=complete_tools)
@click.option("--all", "show_all", is_flag=True, help="Include tools with missing requirements.")
@click.option("--search", metavar="WORDS", help="Only tools that match these words.")
@click.option("--servers", "connect", is_flag=True, help="Include the tools of MCP servers: connects to them.")
@click.option("--for", "provider", type=click.Choice(PROVIDERS), help="JSON in the format of this provider.")
def tools(name: str | None, search: str | None, provider: str | None, *, show_all: bool, connect: bool) -> int:
    """List the tools, or show one."""
    from toolreeve.cli.runtime import new_runtime, servers_with
    from toolreeve.runtime.connectors import select_connectors

    runtime = new_runtime(current(), servers=servers_with(name) if name and not connect else None)
    if connect or (name and name not in runtime.tools and len(runtime.fleet)):
        asyncio.run(_connect_servers(runtime))
    if provider:
        print_json(runtime.tools_for(provider))
    elif name:
        _show(runtime.tools.resolve(name).spec)
    else:
        found = runtime.tools.search(search, limit=1000) if search else runtime.tools.list()
        selection = select_connectors(current().configuration())
        _list([each.spec for each in found], selection.unavailable if show_all else ())
        for connector in (each for each, _ in selection.chosen if each.note):
            note(f"{', '.join(connector.tools)}: {connector.note}")
    return ExitStatus.OK


async def _connect_servers(runtime: "Toolreeve") -> None:
    """Registers the tools of the servers; they stay registered after the connections are closed."""
    with live_line(f"connecting to {count(len(runtime.fleet), 'server')}"):
        async with runtime:
            await runtime.fleet.settled()


def _list(specs: Sequence["ToolSpec"], unavailable: Sequence["UnavailableTool"]) -> None:
    if current().json:
        missing = [asdict(each) | {"available": False} for each in unavailable]
        print_json([*(_as_dict(spec) for spec in specs), *missing])
        return
    rows = [(spec.name, spec.danger.value, spec.category, _first_paragraph(spec.description)) for spec in specs]
    print_table(current(), ("tool", "danger", "category", "description"), rows)
    if unavailable:
        print_text("\nNot registered:")
        lacking = [(each.name, each.lacks, _remedy(each), each.note) for each in unavailable]
        print_table(current(), ("tool", "lacks", "add it with", "note"), lacking)


def _remedy(tool: "UnavailableTool") -> str:
    edit = (f"edit {current().configuration().user_file}",) if "connectors.enabled" in tool.lacks else ()
    return ", then ".join((*edit, *(f"`{command}`" for command in tool.commands)))


def _first_paragraph(text: str) -> str:
    return " ".join(text.strip().split("\n\n", 1)[0].split())


def _as_dict(spec: "ToolSpec") -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "danger": spec.danger.value,
        "category": spec.category,
        "read_only": spec.read_only,
        "idempotent": spec.idempotent,
        "source": spec.source,
        "server": spec.server,
        "tags": list(spec.tags),
        "examples": [dict(example) for example in spec.examples],
        "input_schema": dict(spec.input),
        "output_schema": None if spec.output is None else dict(spec.output),
    }


def _show(spec: "ToolSpec") -> None:
    if current().json:
        print_json(_as_dict(spec))
        return
    facts = [
        f"danger {spec.danger.value}",
        f"category {spec.category}",
        "read-only" if spec.read_only else "may make changes",
    ]
    print_text(f"{spec.name}  ({', '.join(facts)})\n\n{visible(spec.description)}\n")
    properties = spec.input.get("properties", {})
    if properties:
        required = spec.input.get("required", ())
        rows = [_parameter(key, value, required=key in required) for key, value in properties.items()]
        print_table(current(), ("parameter", "type", "default", "description"), rows)
    _show_authority(spec)
    example = dict(spec.examples[0]) if spec.examples else dict.fromkeys(spec.input.get("required", ()), "…")
    words = " ".join(f"{key}={value}" for key, value in example.items())
    print_text(f"\ntoolreeve call {spec.name} {words}".rstrip())


def _show_authority(spec: "ToolSpec") -> None:
    """What the parameters of a tool that is not our own decide, and whether that is a guess."""
    from toolreeve.policy.flow.authority import LABEL, TEXT, WHEN, authority_of

    if spec.source.split(".")[0] == "toolreeve":
        return
    authority = authority_of(spec)
    decided = {key: each for key, each in authority.parameters.items() if each.kind not in (TEXT, LABEL, WHEN)}
    parts = [f"{one_line(key)}: {each.kind}{' (guessed)' if each.guessed else ''}" for key, each in decided.items()]
    print_text(f"\neffect {authority.effect} (guessed); authority {', '.join(parts) or 'none'}")


def _parameter(key: str, schema: Mapping[str, Any], *, required: bool) -> tuple[str, str, str, str]:
    from toolreeve.core import json

    default = ""
    if required:
        default = "required"
    elif "default" in schema:
        default = json.dumps(schema["default"]).decode()
    return key, _type_of(schema), default, _first_paragraph(schema.get("description", ""))


def _type_of(schema: Mapping[str, Any]) -> str:
    from toolreeve.core import json

    if "type" not in schema:
        return "one of " + json.dumps(schema["enum"]).decode() if "enum" in schema else "any"
    kind = schema["type"]
    return kind if isinstance(kind, str) else " or ".join(kind)
