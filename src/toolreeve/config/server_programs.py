"""Describes a folder's MCP servers: the files they run, what they receive.

Trusting the folder trusts these files in their current state: a way to name a file that is missed here is a way to
change it unnoticed. What a program loads by itself is out of scope.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from toolreeve.config import xdg
from toolreeve.config.mcp_servers.dialects import plain
from toolreeve.config.mcp_servers.expansion import Expander, Surroundings, Unresolved, references
from toolreeve.config.mcp_servers.reader import entries, is_ourselves, place, sections
from toolreeve.config.mcp_servers.secret_values import redact_arguments
from toolreeve.core.documents import Document

Entry = Mapping[str, Any]


def describe_entries(document: Document) -> Iterator[str]:
    """What a file would start or connect to, one line per server, for the user who decides whether it may."""
    for name, entry in _entries(document):
        passed = (f"${{{each}}}" for each in _texts(entry, "env_pass"))
        details = {
            "in": [str(entry["cwd"])] if "cwd" in entry else [],
            "with": _variables(entry),
            "is given": dict.fromkeys((*references([*entry.values()]), *passed)),
        }
        shown = "".join(f" ({label} {', '.join(values)})" for label, values in details.items() if values)
        yield f"{name}: {place(entry)}{shown}"


def _variables(entry: Entry) -> list[str]:
    """Environment variables, which steer a program as much as its arguments do, with secrets redacted."""
    environment = entry.get("env")
    named = environment.items() if isinstance(environment, Mapping) else ()
    return redact_arguments([f"{name}={value}" for name, value in named])


def programs_within(document: Document, folder: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """The files of a folder that its servers run, as far as their entries name them."""
    known = Surroundings(environ=environ, secret=lambda _: None, workspace=str(folder), home=xdg.home(environ))
    for _, entry in _entries(document):
        starts = [folder, *(folder / each for each in _resolved(entry.get("cwd"), known))]
        for word in _words(entry):
            for resolved in _resolved(word, known):
                yield from _files_within(folder, starts, resolved)


def _entries(document: Document) -> Iterator[tuple[Any, Entry]]:
    for path, section in sections(document.value):
        for entry in entries(section, path):
            if isinstance(entry.raw, Mapping) and not is_ourselves(entry.raw):
                yield entry.name, plain(entry.raw, own=False).entry


def _words(entry: Entry) -> Iterator[Any]:
    """Every word that may name a file: the program, its arguments, and the values of its environment."""
    args = _texts(entry, "args")
    yield entry.get("command")
    yield from args
    yield from (f"{module.replace('.', '/')}{end}" for module in _modules(args) for end in (".py", "/__main__.py"))
    environment = entry.get("env")
    yield from environment.values() if isinstance(environment, Mapping) else ()


def _modules(args: list[str]) -> Iterator[str]:
    """The modules of `python -m`, which are looked up in the working directory."""
    yield from (module for option, module in pairwise(args) if option == "-m")


def _texts(entry: Entry, key: str) -> list[str]:
    given = entry.get(key)
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _resolved(word: Any, known: Surroundings) -> Iterator[str]:
    if isinstance(word, str):
        try:
            resolved = Expander(known).expand(word)
        except Unresolved:
            return
        yield known.home + resolved[1:] if resolved.startswith("~/") else resolved


def _files_within(folder: Path, starts: list[Path], word: str) -> Iterator[str]:
    """The word itself, or the part after the `=` of an option."""
    for name in dict.fromkeys((word, word.rpartition("=")[2])):
        for start in starts:
            try:
                path = (start / name).resolve()
                if path.is_relative_to(folder) and path.is_file():
                    yield str(path)
            except (OSError, ValueError):
                continue
