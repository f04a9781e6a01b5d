"""What does one source say? A file, the environment or a caller, each checked against the schema, each value traced.

Nothing is taken over silently: unknown keys and wrong values are told with the place they stand in and how to mend it.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolreeve.config.fields import ONLY_BY_HAND, KeyPath, SettingField, leaves, spellings
from toolreeve.core import json
from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigError
from toolreeve.core.suggest import hint_similar


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value and who gave it."""

    value: Any
    origin: str


Layer = Mapping[KeyPath, Given]
Complain = Callable[[ConfigError], None]

ALIASES: Mapping[str, KeyPath] = {
    "WORKSPACE_DIR": ("workspace", "dir"),
    "WORKSPACE_ALLOW_WRITE": ("workspace", "allow_write"),
    "SEARCH_ALLOWED_BASES": ("workspace", "search_allowed_bases"),
    "TIMEOUT_HTTP_REQUEST": ("network", "timeout"),
    "A2A_TOOLS_CONFIG": ("tool_files",),
    "TOOLREEVE_TOOLS": ("tool_files",),
    "A2A_ERROR_PROFILE": ("error_profile",),
    "EXECUTE_MODE": ("sandbox", "mode"),
    "COMMAND_ALLOWLIST": ("commands", "allowlist"),
    "COMMAND_BLOCKLIST": ("commands", "blocklist"),
    "TIMEOUT_COMMAND_DEFAULT": ("commands", "timeout"),
}
"""Other names that are honoured; the name derived from the key wins over them."""


def read_file_layer(document: Document, *, complain: Complain, environ: Mapping[str, str]) -> Layer:
    """The settings of a parsed `toolreeve.toml`. Relative paths in it start at its own directory."""
    base = Path(document.source).parent
    layer: dict[KeyPath, Given] = {}
    for written, path, value in _entries(document, complain):
        leaf = leaves()[path]
        if problem := _problem(leaf, value):
            place = leaf.place(value) if _is_json(value) else ()
            complain(document.error(problem, path=(*written, *place), fix=_fix(leaf, value)))
        else:
            settled = leaf.settle(value, base, environ)
            layer[path] = _beside(layer.get(path), Given(value=settled, origin=_place(document, written)))
    return layer


def _beside(before: Given | None, given: Given) -> Given:
    """Tables that one file holds under two spellings of a key stand side by side."""
    return given if before is None else Given(value={**given.value, **before.value}, origin=before.origin)


def _place(document: Document, path: KeyPath) -> str:
    line = document.line(path)
    return document.source if line is None else f"{document.source}:{line}"


def _entries(document: Document, complain: Complain) -> Iterable[tuple[KeyPath, KeyPath, Any]]:
    """The keys that the tree knows, as written and as meant, with their values; the others are complained about."""
    pending: list[tuple[KeyPath, Any]] = [((), document.value)]
    while pending:
        written, value = pending.pop()
        path = spellings().get(written, written)
        if path in leaves():
            yield written, path, value
        elif not isinstance(value, Mapping):
            complain(document.error("is a section, not a value", path=path, fix=f"write [{'.'.join(path)}] above it"))
        else:
            known = _known_below(path)
            for name, inner in value.items():
                if name in known or (*path, name) in spellings():
                    pending.append(((*path, name), inner))
                else:
                    complain(_unknown_key(document, (*path, name), known))


def _known_below(path: KeyPath) -> list[str]:
    return list(dict.fromkeys(leaf[len(path)] for leaf in leaves() if leaf[: len(path)] == path))


def _unknown_key(document: Document, path: KeyPath, known: Sequence[str]) -> ConfigError:
    elsewhere = [leaf.key for leaf in leaves().values() if leaf.path[-1] == path[-1]]
    fix = f"it is spelled {elsewhere[0]}" if elsewhere else f"known here are {', '.join(known)}"
    return document.error(f"unknown key{hint_similar(path[-1], known)}", path=path, fix=fix)


def read_environment(environ: Mapping[str, str], *, complain: Complain, cwd: Path) -> Layer:
    """`TOOLREEVE_POLICY_MODE` is `policy.mode`. An empty variable counts as not set."""
    names = dict(ALIASES) | {leaf.variable: leaf.path for leaf in leaves().values() if leaf.variable is not None}
    layer: dict[KeyPath, Given] = {}
    for name, path in names.items():
        text = environ.get(name, "")
        if not text:
            continue
        leaf = leaves()[path]
        value = _from_text(leaf, text, foreign=name in ALIASES)
        if problem := _problem(leaf, value):
            complain(ConfigError(problem, source=f"environment variable {name}", fix=_fix(leaf, value)))
        else:
            layer[path] = Given(value=leaf.settle(value, cwd, environ), origin=f"environment variable {name}")
    for name in environ:
        if name.startswith("TOOLREEVE_") and name not in names:
            fix = f"unset it{hint_similar(name, list(names))}; `toolreeve config schema` lists the keys"
            complain(ConfigError("no such setting", source=f"environment variable {name}", fix=fix))
    return layer


def _from_text(leaf: SettingField, text: str, *, foreign: bool) -> Any:
    """The value that a variable's text stands for; what cannot be read stays text, and the schema complains."""
    if leaf.several:
        return _list_from_text(text, paths=leaf.about.paths, foreign=foreign)
    if leaf.hint is bool:
        words = {
            "true": True,
            "1": True,
            "yes": True,
            "on": True,
            "false": False,
            "0": False,
            "no": False,
            "off": False,
        }
        return words.get(text.strip().lower(), text)
    if leaf.hint is str or "enum" in leaf.document:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _list_from_text(text: str, *, paths: bool, foreign: bool) -> Any:
    """A JSON array, or parts: paths are parted as in PATH, names by commas, foreign lists by either."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    separators = f"[,{os.pathsep}]" if foreign else os.pathsep if paths else ","
    return [part.strip() for part in re.split(separators, text) if part.strip()] or text


def read_overrides(
    overrides: Mapping[str, Any], *, origin: str, complain: Complain, cwd: Path, environ: Mapping[str, str]
) -> Layer:
    """What the caller says, by dotted key; None means not said. Only here may `policy.mode` be bypass."""
    layer: dict[KeyPath, Given] = {}
    for key, raw in overrides.items():
        if raw is None:
            continue
        value = list(raw) if isinstance(raw, (tuple, set, frozenset)) else str(raw) if isinstance(raw, Path) else raw
        leaf = leaves().get(tuple(key.split(".")))
        if leaf is None:
            known = [each.key for each in leaves().values()]
            complain(ConfigError(f"no such setting{hint_similar(key, known)}", source=origin, key=key))
        elif value != ONLY_BY_HAND and (problem := _problem(leaf, value)):
            complain(ConfigError(problem, source=origin, key=key, fix=_fix(leaf, value)))
        else:
            layer[leaf.path] = Given(value=leaf.settle(value, cwd, environ), origin=origin)
    return layer


def _problem(leaf: SettingField, value: Any) -> str:
    if isinstance(value, Mapping) and leaf.tables and not leaf.several:
        return ""
    if not _is_json(value):
        return f"is a {type(value).__name__}, which no setting takes"
    if leaf.path == ("policy", "mode") and value == ONLY_BY_HAND:
        return "bypass is never taken from a file or the environment"
    return leaf.problem(value)


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (str, int, bool))


def _fix(leaf: SettingField, value: Any) -> str:
    if value == ONLY_BY_HAND and leaf.path == ("policy", "mode"):
        return "pass --mode bypass for the one command that needs it, or Toolreeve(mode=...) in code"
    if leaf.tables and leaf.several:
        return (
            'write [[serve.tokens]] with token = "${secret:NAME}" or sha256 = "…", user, and if need be role and tools'
        )
    schema = leaf.document
    if "enum" in schema:
        return f"use one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str) and leaf.several:
        return f"write a list: {leaf.path[-1]} = [{json.dumps(value).decode()}]"
    return leaf.about.description
