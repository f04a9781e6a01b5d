"""Parses tool arguments from the command line, by the tool's schema.

`key=text` is converted to the type of the key in the schema: a string stays exactly as typed. `key:=json` is JSON
regardless of the schema, `key=@file` is a file's text (`@-` is standard input), and a key of an array may be repeated.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from toolreeve.core import json

MAX_INPUT = 64 * 1024 * 1024


class BadArgument(ValueError):
    """An argument that cannot be parsed, with a message for the user."""


ReadText = Callable[[str], str]


def parse_pairs(pairs: Sequence[str], schema: Mapping[str, Any], read_text: ReadText) -> dict[str, Any]:
    """Raises BadArgument. A key that is not in the schema is kept as text, for the tool's validation to reject."""
    args: dict[str, Any] = {}
    for pair in pairs:
        key, value = _parse(pair, schema, read_text)
        if key not in args:
            args[key] = value
        elif "array" in _types(schema, key) and isinstance(args[key], list):
            more = value if isinstance(value, list) else [value]
            args[key] = [*args[key], *more]
        else:
            raise BadArgument(f"{key!r} is given twice")
    return args


def _parse(pair: str, schema: Mapping[str, Any], read_text: ReadText) -> tuple[str, Any]:
    key, equals, text = pair.partition("=")
    if not equals or key in ("", ":"):
        raise BadArgument(f"{pair!r} is not key=value")
    _require_utf8(pair)
    if key.endswith(":"):
        return key[:-1], _json(text, where=key[:-1])
    if text.startswith("@"):
        text = read_text(text[1:])
    return key, _typed(text, _types(schema, key))


def _require_utf8(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise BadArgument(f"{word[:60]!r} is not valid UTF-8; pass the bytes in a file with key=@file") from None


def _types(schema: Mapping[str, Any], key: str) -> frozenset[str]:
    """The JSON types that the schema allows for a key; empty if it names none."""
    properties = schema.get("properties")
    node = properties.get(key) if isinstance(properties, Mapping) else None
    return _types_of(node) if isinstance(node, Mapping) else frozenset({"string"})


def _types_of(node: Mapping[str, Any]) -> frozenset[str]:
    named = node.get("type", ())
    types = {named} if isinstance(named, str) else set(named)
    for each in node.get("enum", ()):
        types.add("string" if isinstance(each, str) else "other")
    for branch in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        if isinstance(branch, Mapping):
            types |= _types_of(branch)
    return frozenset(types)


def _typed(text: str, types: frozenset[str]) -> Any:
    if "string" in types:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if "array" in types and not isinstance(value, list):
        return [value] if isinstance(value, dict) else [text]
    return value


def parse_object(text: str | bytes) -> dict[str, Any]:
    """The arguments as one JSON object. Raises BadArgument."""
    value = _json(text, where="the arguments")
    if not isinstance(value, dict):
        raise BadArgument(f"the arguments must be a JSON object such as {{}}, not {type(value).__name__}")
    return value


def _json(text: str | bytes, *, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise BadArgument(f"{where}: not valid JSON: {problem}") from None


def read_stdin() -> bytes:
    return _bounded(sys.stdin.buffer, "standard input")


def read_text(name: str) -> str:
    try:
        if name == "-":
            return read_stdin().decode()
        with Path(name).open("rb") as stream:
            return _bounded(stream, repr(name)).decode()
    except OSError as problem:
        raise BadArgument(f"{name!r} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise BadArgument(f"{name!r} is not UTF-8 text") from None


def _bounded(stream: IO[bytes], name: str) -> bytes:
    content = stream.read(MAX_INPUT + 1)
    if len(content) > MAX_INPUT:
        raise BadArgument(f"{name} is larger than {MAX_INPUT // 1024 // 1024} MB")
    return content
