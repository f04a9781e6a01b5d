"""How is a tool called where fewer characters are allowed? No two names are ever spelled the same.

A forbidden character becomes `_0x2f_`, its number between marks; a name that already holds the mark has it escaped in
the same way, so every short name can be read back by itself. A name too long for the provider is cut and ends in a
digest, after a mark that no other spelling can hold; only whoever knows the tools can read it back.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from toolreeve.core.errors import ToolreeveError

MAX_NAME = 64
_MARK = "_0x"
_CUT = "_0xh"
_DIGEST = 16
_UNSPEAKABLE = re.compile(r"[^a-zA-Z0-9_-]|_(?=0x)")
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
    spelled = _UNSPEAKABLE.sub(lambda found: f"{_MARK}{ord(found[0]):x}_", name)
    if provider is Provider.GEMINI and not (spelled[:1].isalpha() or spelled[:1] == "_"):
        spelled = f"{_MARK}{ord(spelled[0]):x}_{spelled[1:]}" if spelled else spelled
    if len(spelled) <= MAX_NAME:
        return spelled
    import hashlib

    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return spelled[: MAX_NAME - len(_CUT) - _DIGEST] + _CUT + digest


def tool_name(provider: Provider, spelled: str, known: Iterable[str] = ()) -> str:
    """The name behind a spelling; a spelling that no name has stays as it is. One that was cut is looked for among
    `known`."""
    if provider is Provider.MCP:
        return spelled
    if _CUT in spelled:
        return next((name for name in known if wire_name(provider, name) == spelled), spelled)
    name = _ESCAPED.sub(_character, spelled)
    return name if wire_name(provider, name) == spelled else spelled


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return chr(number) if number <= 0x10FFFF else found[0]
