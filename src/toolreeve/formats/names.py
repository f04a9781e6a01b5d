"""Tool names where fewer characters are allowed, reversible and unique.

A forbidden character becomes `_0x2f_`, its code between marks; a mark in the original name is escaped in the same way,
so every short name can be decoded by itself. A name too long for the provider is cut and ends in a digest, after a mark
that no other encoding contains; decoding it needs the names of the tools.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from toolreeve.core.errors import ToolreeveError

MAX_NAME = 64
_MARK = "_0x"
_CUT = "_0xh"
_DIGEST = 16
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]|_(?=0x)")
_ESCAPED = re.compile(r"_0x([0-9a-f]{1,6})_")


class Provider(StrEnum):
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"
    MCP = "mcp"
    GEMINI = "gemini"

    @classmethod
    def named(cls, name: str) -> "Provider":
        try:
            return cls(name)
        except ValueError:
            raise ToolreeveError(f"unknown provider {name!r}; known are {', '.join(cls)}") from None


def wire_name(provider: Provider, name: str) -> str:
    """The name as the provider accepts it."""
    if provider is Provider.MCP:
        return name
    encoded = _FORBIDDEN.sub(lambda found: f"{_MARK}{ord(found[0]):x}_", name)
    if provider is Provider.GEMINI and encoded and not (encoded[0].isalpha() or encoded[0] == "_"):
        encoded = f"{_MARK}{ord(encoded[0]):x}_{encoded[1:]}"
    if len(encoded) <= MAX_NAME:
        return encoded
    import hashlib

    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return encoded[: MAX_NAME - len(_CUT) - _DIGEST] + _CUT + digest


def tool_name(provider: Provider, encoded: str, known: Iterable[str] = ()) -> str:
    """The original name; a string that encodes no name is returned unchanged. One that was cut is searched for among
    `known`."""
    if provider is Provider.MCP:
        return encoded
    if _CUT in encoded:
        return next((name for name in known if wire_name(provider, name) == encoded), encoded)
    name = _ESCAPED.sub(_character, encoded)
    return name if wire_name(provider, name) == encoded else encoded


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return chr(number) if number <= 0x10FFFF else found[0]
