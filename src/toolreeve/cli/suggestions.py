"""Shell completion of tools, their arguments, files, MCP servers and call ids.

Completion only reads: it starts no server, asks nobody and records nothing. Whatever goes wrong, it offers nothing
rather than print an error into the user's command line.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import BashComplete, CompletionItem, ZshComplete, add_completion_class

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.runtime.toolreeve import Toolreeve

MOST_CALLS = 50
PATHS = frozenset({"path", "source", "destination", "base", "working_dir", "target"})
"""Arguments whose values are files or directories."""
Suggest = Callable[[click.Context, str], Iterable[tuple[str, str]]]
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(suggest: Suggest) -> Complete:
    """The names that begin with what was typed, each with its help."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(Exception):  # see the module: nothing is better than a traceback at the prompt
            found = suggest(context, incomplete)
            return [CompletionItem(name, help=text) for name, text in found if name.startswith(incomplete)]
        return []

    return complete


def _configuration() -> "Configuration":
    from toolreeve.config import load

    return load({})


def _runtime() -> "Toolreeve":
    from toolreeve.runtime.toolreeve import Toolreeve

    return Toolreeve(settings=_configuration(), mcp_servers={}, approve=(), origin="cli")


def _tools(_: click.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    """Of our own tools; for a server's, its name as far as the two underscores."""
    runtime = _runtime()
    for bound in runtime.tools.list():
        yield bound.spec.name, _first_sentence(bound.spec.description)
    for server in runtime.configuration.mcp_servers:
        if server.enabled and not incomplete.startswith(f"{server.name}__"):
            yield f"{server.name}__", f"tools of the server {server.name}"


def _arguments(context: click.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    """`key=` for parameters that were not given yet, required ones first; after it, the values of an enumeration."""
    bound = _runtime().tools.resolve(str(context.params.get("tool")))
    properties = bound.spec.input.get("properties", {})
    key, given, _ = incomplete.partition("=")
    if given:
        for value in _values(properties.get(key, {})):
            yield f"{key}={value}", ""
        at = "@" if incomplete.startswith(f"{key}=@") else ""
        if at or key in PATHS:
            yield from _files(f"{key}={at}", incomplete)
        return
    used = {str(pair).partition("=")[0] for pair in context.params.get("pairs") or ()}
    required = bound.spec.input.get("required", ())
    for name in sorted(properties, key=lambda name: name not in required):
        if name not in used:
            yield f"{name}=", _first_sentence(properties[name].get("description", ""))


def _values(schema: Any) -> Iterable[str]:
    if schema.get("type") == "boolean":
        return ("true", "false")
    return [str(value) for value in schema.get("enum", ()) if value is not None]


def _files(prefix: str, incomplete: str) -> Iterable[tuple[str, str]]:
    """What a path may go on with; hidden files only if the dot was typed."""
    folder, slash, name = incomplete.removeprefix(prefix).rpartition("/")
    for each in sorted(Path(folder + slash or ".").iterdir()):
        if each.name.startswith(name) and (name or not each.name.startswith(".")):
            end, kind = ("/", "directory") if each.is_dir() else ("", "")
            yield f"{prefix}{folder}{slash}{each.name}{end}", kind


def _servers(_: click.Context, __: str) -> Iterable[tuple[str, str]]:
    return [(server.name, server.place) for server in _configuration().mcp_servers]


def _calls(_: click.Context, __: str) -> Iterable[tuple[str, str]]:
    """The most recent calls, newest first."""
    return asyncio.run(_recent_calls())


async def _recent_calls() -> list[tuple[str, str]]:
    from toolreeve.record.audit import Audit
    from toolreeve.runtime.store import configured_store

    store = configured_store(_configuration())
    if not store.has_begun:
        return []
    async with store:
        records = [record.to_dict() for record in await Audit(store).list(limit=MOST_CALLS)]
    return list({record["call_id"]: str(record.get("tool", "")) for record in records if record.get("call_id")}.items())


@add_completion_class
class _Bash(BashComplete):
    """bash splits words at `=` and completes what follows it. A word that goes on gets no blank."""

    source_template = BashComplete.source_template.replace(
        "    return 0\n",
        "    [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *[=/] ]] && compopt -o nospace 2> /dev/null\n    return 0\n",
        1,
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        joined: list[str] = []
        for word in (*args, incomplete):
            if joined and (word == "=" or (word and joined[-1].endswith("="))):
                joined[-1] += word
            else:
                joined.append(word)
        return joined[:-1], joined[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        key, given, _ = self.get_completion_args()[1].partition("=")
        return f"{item.type},{item.value.removeprefix(key + given) if given else item.value}"


@add_completion_class
class _Zsh(ZshComplete):
    """As for bash: a word that goes on gets no blank."""

    source_template = (
        ZshComplete.source_template.replace(
            '            if [[ "$descr" == "_" ]]; then\n',
            '            if [[ "$key" == *[=/] ]]; then\n'
            '                unfinished+=("$key":"$descr")\n'
            '            elif [[ "$descr" == "_" ]]; then\n',
        )
        .replace(
            '    if [ -n "$completions_with_descriptions" ]; then\n',
            '    if [ -n "$unfinished" ]; then\n'
            "        _describe -V unsorted unfinished -U -S ''\n"
            "    fi\n\n"
            '    if [ -n "$completions_with_descriptions" ]; then\n',
        )
        .replace("    local -a response\n", "    local -a response\n    local -a unfinished\n")
    )


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")[:80]


complete_tools = _completing(_tools)
complete_arguments = _completing(_arguments)
complete_servers = _completing(_servers)
complete_calls = _completing(_calls)
