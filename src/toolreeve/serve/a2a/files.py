"""Files of A2A messages, as arguments of the calls naming them.

A file goes nowhere by itself: what a call does with it is decided on the road, with the content as an argument.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from a2a.types import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError

TEXT = "$file"
BYTES = "$base64"
USE = f'name it in a parameter: {{"{TEXT}": "NAME"}} for its text, {{"{BYTES}": "NAME"}} for its bytes in base64'
ADDRESS = "a file by address is not fetched for its caller: call fetch_url, which is decided like every call"


class MessageFiles:
    """The files of one message, by name. Raises InvalidParamsError, or ContentTypeNotSupportedError for an address."""

    def __init__(self, message: Message, max_bytes: int) -> None:
        if any(part.HasField("url") for part in message.parts):
            raise ContentTypeNotSupportedError(message=ADDRESS)
        parts = [part for part in message.parts if part.HasField("raw")]
        size = sum(len(part.raw) for part in parts)
        if size > max_bytes:
            raise InvalidParamsError(
                message=f"the files have {size:,} bytes; at most {max_bytes:,} (a2a.max_file_bytes)"
            )
        self._files: dict[str, bytes] = {
            part.filename or f"file-{number}": part.raw for number, part in enumerate(parts, 1)
        }
        if len(self._files) < len(parts):
            raise InvalidParamsError(message="two files of the message have the same name")
        self._used: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._files)

    def fill(self, value: Any) -> Any:
        """The arguments, with the content of each file where it is named."""
        match value:
            case {"$file": str(name), **rest} if not rest:
                return self._text(name)
            case {"$base64": str(name), **rest} if not rest:
                return base64.b64encode(self._find(name)).decode()
            case Mapping():
                return {key: self.fill(each) for key, each in value.items()}
            case list():
                return [self.fill(each) for each in value]
            case _:
                return value

    def check_used(self) -> None:
        if unused := sorted(set(self._files) - self._used):
            raise InvalidParamsError(message=f"no call uses the file {unused[0]!r:.100}; {USE}")

    def _find(self, name: str) -> bytes:
        if name not in self._files:
            known = ", ".join(sorted(self._files)) or "none"
            raise InvalidParamsError(message=f"the message has no file {name!r:.100}; its files: {known:.300}")
        self._used.add(name)
        return self._files[name]

    def _text(self, name: str) -> str:
        try:
            return self._find(name).decode()
        except UnicodeDecodeError:
            raise InvalidParamsError(message=f"the file {name!r:.100} is not UTF-8 text; {USE}") from None


def without_content(parts: Iterable[Part]) -> list[Part]:
    """As they are stored: the content of a file is kept in the arguments only."""
    return [_described(part) if part.HasField("raw") else part for part in parts]


def _described(part: Part) -> Part:
    text = f"(a file of {len(part.raw):,} bytes)"
    return Part(text=text, filename=part.filename, media_type=part.media_type)


def files_of(images: Iterable[Mapping[str, Any]], raw: Mapping[str, Any] | None) -> list[Part]:
    """The files of a result: images, and those that an MCP server returned."""
    content = [] if raw is None else raw.get("content", ())
    blocks = [block for block in (*images, *content) if isinstance(block, Mapping)]
    return [part for block in blocks if (part := _file(block)) is not None]


def _file(block: Mapping[str, Any]) -> Part | None:
    match block:
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return _raw(data, {"name": str(resource.get("uri", "")).rpartition("/")[2], **resource})
        case {"type": "resource_link", "uri": str(uri)}:
            return Part(url=uri, filename=str(block.get("name", "")), media_type=str(block.get("mimeType", "")))
        case {"data": str(data), "mimeType": str()}:
            return _raw(data, block)
        case _:
            return None


def _raw(data: str, about: Mapping[str, Any]) -> Part | None:
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    return Part(raw=content, filename=str(about.get("name", "")), media_type=str(about.get("mimeType", "")))
