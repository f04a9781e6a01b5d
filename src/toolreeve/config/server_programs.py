"""Which files of a folder do its servers run, and what would they be given? As far as their entries say so.

Whoever trusts the folder trusts these files as they are: a way to name one that is not seen here is a way to change it
unnoticed. What a program loads by itself is beyond this.
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

Said = Mapping[str, Any]


def entries_shown(document: Document) -> Iterator[str]:
    """What a file would have started or connected to, for a person who decides whether it may."""
    for name, said in _entries(document):
        given = dict.fromkeys((*references([*said.values()]), *(f"${{{each}}}" for each in _texts(said, "env_pass"))))
        told = {"in": [str(said["cwd"])] if "cwd" in said else [], "with": _variables(said), "is given": given}
        yield f"{name}: {place(said)}" + "".join(f" ({how} {', '.join(each)})" for how, each in told.items() if each)


def _variables(said: Said) -> list[str]:
    """What steers a program as much as its arguments do, without what looks like a secret."""
    environment = said.get("env")
    named = environment.items() if isinstance(environment, Mapping) else ()
    return redact_arguments([f"{name}={value}" for name, value in named])


def programs_within(document: Document, folder: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """The files of a folder that its servers are made of, as far as their entries name them."""
    known = Surroundings(environ=environ, secret=lambda _: None, workspace=str(folder), home=xdg.home(environ))
    for _, said in _entries(document):
        starts = [folder, *(folder / each for each in _resolved(said.get("cwd"), known))]
        for word in _words(said):
            for resolved in _resolved(word, known):
                yield from _files_within(folder, starts, resolved)


def _entries(document: Document) -> Iterator[tuple[Any, Said]]:
    for path, section in sections(document.value):
        for entry in entries(section, path):
            if isinstance(entry.raw, Mapping) and not is_ourselves(entry.raw):
                yield entry.name, plain(entry.raw, own=False).entry


def _words(said: Said) -> Iterator[Any]:
    """All that may name a file: a program, its arguments, and what its environment tells it to load."""
    args = _texts(said, "args")
    yield said.get("command")
    yield from args
    yield from (f"{module.replace('.', '/')}{end}" for module in _modules(args) for end in (".py", "/__main__.py"))
    environment = said.get("env")
    yield from environment.values() if isinstance(environment, Mapping) else ()


def _modules(args: list[str]) -> Iterator[str]:
    """What `python -m` is told to run is looked for where it starts."""
    yield from (module for option, module in pairwise(args) if option == "-m")


def _texts(said: Said, key: str) -> list[str]:
    given = said.get(key)
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _resolved(word: Any, known: Surroundings) -> Iterator[str]:
    if isinstance(word, str):
        try:
            resolved = Expander(known).expand(word)
        except Unresolved:
            return
        yield known.home + resolved[1:] if resolved.startswith("~/") else resolved


def _files_within(folder: Path, starts: list[Path], word: str) -> Iterator[str]:
    """The word itself, or what stands behind the `=` of an option."""
    for name in dict.fromkeys((word, word.rpartition("=")[2])):
        for start in starts:
            try:
                path = (start / name).resolve()
                if path.is_relative_to(folder) and path.is_file():
                    yield str(path)
            except (OSError, ValueError):
                continue
