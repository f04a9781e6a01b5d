"""Configuration layers: a file, the environment or overrides, validated and traced.

Nothing is ignored silently: unknown keys and invalid values are reported with their location and a fix.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolreeve.config.fields import ONLY_BY_HAND, KeyPath, SettingField, setting_fields, spellings
from toolreeve.core import json
from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigError
from toolreeve.core.suggest import hint_similar


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedValue:
    """A value and its origin."""

    value: Any
    origin: str


Layer = Mapping[KeyPath, SourcedValue]
Complain = Callable[[ConfigError], None]

ALIASES: Mapping[str, KeyPath] = {
    "WORKSPACE_DIR": ("workspace", "dir"),
    "WORKSPACE_ALLOW_WRITE": ("workspace", "allow_write"),
    "SEARCH_ALLOWED_BASES": ("workspace", "search_allowed_bases"),
    "TIMEOUT_HTTP_REQUEST": ("network", "timeout"),
    "A2A_TOOLS_CONFIG": ("tool_files",),
    "TOOLREEVE_TOOLS": ("tool_files",),
    "A2A_ERROR_PROFILE": ("error_profile",),
    "A2A_AUTO_APPROVAL_FILE": ("approval", "auto_approval_file"),
    "A2A_GOVERNORS_FILE": ("approval", "governors_file"),
    "EXECUTE_MODE": ("sandbox", "mode"),
    "COMMAND_ALLOWLIST": ("commands", "allowlist"),
    "COMMAND_BLOCKLIST": ("commands", "blocklist"),
    "TIMEOUT_COMMAND_DEFAULT": ("commands", "timeout"),
}
"""Alternative variable names; the name derived from the key takes precedence."""


def read_file_layer(document: Document, *, complain: Complain, environ: Mapping[str, str]) -> Layer:
    """The settings of a parsed `toolreeve.toml`. Relative paths start at its directory."""
    base = Path(document.source).parent
    layer: dict[KeyPath, SourcedValue] = {}
    for written, path, value in _entries(document, complain):
        setting = setting_fields()[path]
        if problem := _problem(setting, value):
            inner = setting.error_path(value) if _is_json(value) else ()
            complain(document.error(problem, path=(*written, *inner), fix=_fix(setting, value)))
        else:
            normalized = setting.normalize(value, base, environ)
            sourced = SourcedValue(value=normalized, origin=_location(document, written))
            layer[path] = _merge_spellings(layer.get(path), sourced)
    return layer


def _merge_spellings(before: SourcedValue | None, given: SourcedValue) -> SourcedValue:
    """Tables that one file holds under two spellings of a key are merged."""
    if before is None:
        return given
    return SourcedValue(value={**given.value, **before.value}, origin=before.origin)


def _location(document: Document, path: KeyPath) -> str:
    line = document.line(path)
    return document.source if line is None else f"{document.source}:{line}"


def _entries(document: Document, complain: Complain) -> Iterable[tuple[KeyPath, KeyPath, Any]]:
    """Known keys as (written, canonical, value); unknown ones are reported."""
    pending: list[tuple[KeyPath, Any]] = [((), document.value)]
    while pending:
        written, value = pending.pop()
        path = spellings().get(written, written)
        if path in setting_fields():
            yield written, path, value
        elif not isinstance(value, Mapping):
            complain(document.error("is a table, not a value", path=path, fix=f"use [{'.'.join(path)}]"))
        else:
            known = _known_below(path)
            for name, inner in value.items():
                if name in known or (*path, name) in spellings():
                    pending.append(((*path, name), inner))
                else:
                    complain(_unknown_key(document, (*path, name), known))


def _known_below(path: KeyPath) -> list[str]:
    return list(dict.fromkeys(setting[len(path)] for setting in setting_fields() if setting[: len(path)] == path))


def _unknown_key(document: Document, path: KeyPath, known: Sequence[str]) -> ConfigError:
    elsewhere = [setting.key for setting in setting_fields().values() if setting.path[-1] == path[-1]]
    fix = f"use {elsewhere[0]}" if elsewhere else f"known keys here: {', '.join(known)}"
    return document.error(f"unknown key{hint_similar(path[-1], known)}", path=path, fix=fix)


def read_environment(environ: Mapping[str, str], *, complain: Complain, cwd: Path) -> Layer:
    """`TOOLREEVE_POLICY_MODE` sets `policy.mode`. An empty variable counts as not set."""
    names = dict(ALIASES) | {
        setting.variable: setting.path for setting in setting_fields().values() if setting.variable is not None
    }
    layer: dict[KeyPath, SourcedValue] = {}
    for name, path in names.items():
        text = environ.get(name, "")
        if not text:
            continue
        setting = setting_fields()[path]
        value = _from_text(setting, text, foreign=name in ALIASES)
        if problem := _problem(setting, value):
            complain(ConfigError(problem, source=f"environment variable {name}", fix=_fix(setting, value)))
        else:
            normalized = setting.normalize(value, cwd, environ)
            layer[path] = SourcedValue(value=normalized, origin=f"environment variable {name}")
    for name in environ:
        if name.startswith("TOOLREEVE_") and name not in names:
            fix = f"unset it{hint_similar(name, list(names))}; `toolreeve config schema` lists the keys"
            complain(ConfigError("no such setting", source=f"environment variable {name}", fix=fix))
    return layer


def _from_text(setting: SettingField, text: str, *, foreign: bool) -> Any:
    """The value of a variable; text that cannot be parsed is kept for the schema to reject."""
    if setting.is_list:
        return _list_from_text(text, paths=setting.field.paths, foreign=foreign)
    if setting.hint is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    if setting.hint is str or "enum" in setting.document:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


_BOOLEANS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def _list_from_text(text: str, *, paths: bool, foreign: bool) -> Any:
    """A JSON array, or a separated list: paths as in PATH, names by commas, foreign lists by either."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    separators = os.pathsep if paths else ","
    if foreign:
        separators = f"[,{os.pathsep}]"
    parts = [part.strip() for part in re.split(separators, text)]
    return list(filter(None, parts)) or text


def read_overrides(
    overrides: Mapping[str, Any], *, origin: str, complain: Complain, cwd: Path, environ: Mapping[str, str]
) -> Layer:
    """The caller's values by dotted key; None means not set. Only here may `policy.mode` be bypass."""
    layer: dict[KeyPath, SourcedValue] = {}
    for key, raw in overrides.items():
        if raw is None:
            continue
        value = _plain(raw)
        setting = setting_fields().get(tuple(key.split(".")))
        if setting is None:
            known = [each.key for each in setting_fields().values()]
            complain(ConfigError(f"no such setting{hint_similar(key, known)}", source=origin, key=key))
        elif value != ONLY_BY_HAND and (problem := _problem(setting, value)):
            complain(ConfigError(problem, source=origin, key=key, fix=_fix(setting, value)))
        else:
            layer[setting.path] = SourcedValue(value=setting.normalize(value, cwd, environ), origin=origin)
    return layer


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _problem(setting: SettingField, value: Any) -> str:
    if isinstance(value, Mapping) and setting.has_tables and not setting.is_list:
        return ""
    if not _is_json(value):
        return f"is a {type(value).__name__}, which no setting accepts"
    if setting.path == ("policy", "mode") and value == ONLY_BY_HAND:
        return "bypass cannot be set in a file or in the environment"
    return setting.problem(value)


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (str, int, bool))


def _fix(setting: SettingField, value: Any) -> str:
    if value == ONLY_BY_HAND and setting.path == ("policy", "mode"):
        return "pass --mode bypass for the one command that needs it, or Toolreeve(mode=...) in code"
    if setting.has_tables and setting.is_list:
        return (
            'write [[serve.tokens]] with token = "${secret:NAME}" or sha256 = "…", user, and optionally role and tools'
        )
    schema = setting.document
    if "enum" in schema:
        also = f", or in code and on the command line {ONLY_BY_HAND}" if setting.path == ("policy", "mode") else ""
        return f"use one of {', '.join(map(str, schema['enum']))}{also}"
    if isinstance(value, str) and setting.is_list:
        return f"write a list: {setting.path[-1]} = [{json.dumps(value).decode()}]"
    return setting.field.description
