"""Which tools are there? All of them in a table, or one with its parameters."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import say, say_json, say_table
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import visible

if TYPE_CHECKING:
    from toolreeve.core.tool import ToolSpec
    from toolreeve.runtime.toolreeve import Toolreeve

PROVIDERS = ("openai", "anthropic", "ollama", "mcp", "gemini")


@click.command(cls=CliCommand)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Also those that lack something, and what they lack.")
@click.option("--search", metavar="WORDS", help="Only those that have to do with these words.")
@click.option("--servers", "connects", is_flag=True, help="Also those of the MCP servers, which are connected to.")
@click.option("--for", "provider", type=click.Choice(PROVIDERS), help="As this provider wants them, in JSON.")
def tools(name: str | None, search: str | None, provider: str | None, *, everything: bool, connects: bool) -> int:
    """List the tools, or show one of them."""
    from toolreeve.cli.runtime import new_runtime, servers_of

    runtime = new_runtime(current(), servers=servers_of(name) if name and not connects else None)
    if connects or (name and name not in runtime.tools and len(runtime.fleet)):
        asyncio.run(_meet(runtime))
    if provider:
        say_json(runtime.tools_for(provider))
    elif name:
        _show(runtime.tools.resolve(name).spec)
    else:
        found = runtime.tools.search(search, limit=1000) if search else runtime.tools.list()
        _list([each.spec for each in found], everything=everything)
    return ExitStatus.OK


async def _meet(runtime: "Toolreeve") -> None:
    """Have the tools of the servers registered; they stay so when the servers are gone."""
    async with runtime:
        await runtime.fleet.settled()


def _list(specs: Sequence["ToolSpec"], *, everything: bool) -> None:
    if current().json:
        say_json([_as_dict(spec) for spec in specs])
        return
    rows = [(spec.name, spec.danger.value, spec.category, _first_line(spec.description)) for spec in specs]
    say_table(current(), ("tool", "danger", "category", "what it does"), rows)
    if everything:
        say("every tool that this version knows is registered: none lacks anything")


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


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
        say_json(_as_dict(spec))
        return
    facts = [
        f"danger {spec.danger.value}",
        f"category {spec.category}",
        "read-only" if spec.read_only else "may change",
    ]
    say(f"{spec.name}  ({', '.join(facts)})\n\n{visible(spec.description)}\n")
    properties = spec.input.get("properties", {})
    if properties:
        required = spec.input.get("required", ())
        rows = [_parameter(key, value, required=key in required) for key, value in properties.items()]
        say_table(current(), ("parameter", "type", "default", "what it means"), rows)
    example = dict(spec.examples[0]) if spec.examples else dict.fromkeys(spec.input.get("required", ()), "…")
    words = " ".join(f"{key}={value}" for key, value in example.items())
    say(f"\ntoolreeve call {spec.name} {words}".rstrip())


def _parameter(key: str, schema: Mapping[str, Any], *, required: bool) -> tuple[str, str, str, str]:
    from toolreeve.core import json

    kind = schema.get("type", "one of " + json.dumps(schema["enum"]).decode() if "enum" in schema else "any")
    shown = kind if isinstance(kind, str) else " or ".join(kind)
    default = "required" if required else json.dumps(schema["default"]).decode() if "default" in schema else ""
    return key, shown, default, _first_line(schema.get("description", ""))
