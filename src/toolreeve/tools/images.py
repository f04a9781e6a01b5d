"""Images for `read_file`: returned as image content, recognised by name and signature."""

import base64
from collections.abc import Mapping
from posixpath import splitext

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.result import Output

MAX_IMAGE = 5 * 1024 * 1024
_TYPES: Mapping[str, tuple[str, bytes]] = {
    ".png": ("image/png", b"\x89PNG\r\n\x1a\n"),
    ".jpg": ("image/jpeg", b"\xff\xd8\xff"),
    ".jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    ".gif": ("image/gif", b"GIF8"),
    ".webp": ("image/webp", b"RIFF"),
}
_ENDINGS = tuple(_TYPES)


def find_type(path: str) -> tuple[str, bytes] | None:
    """The MIME type and the first bytes of an image with this name; None for any other file."""
    if not path[-5:].lower().endswith(_ENDINGS):
        return None
    return _TYPES.get(splitext(path)[1].lower())


def read(files: Files, path: str, kind: tuple[str, bytes]) -> Output:
    """The image itself; its data is a description. Raises ToolError if it is too large or not what its name says."""
    mime_type, signature = kind
    chunk = files.read(path, MAX_IMAGE)
    if chunk.size > MAX_IMAGE:
        most = MAX_IMAGE // 1024 // 1024
        raise ToolError(ErrorCode.READ_ERROR, f"{path}: images above {most} MB are not read", retryable=False)
    if not chunk.data.startswith(signature):
        raise ToolError(ErrorCode.READ_ERROR, f"{path}: is not an image of type {mime_type}", retryable=False)
    shown = f"[{mime_type}, {chunk.size:,} bytes]"
    data = {
        "content": shown,
        "path": chunk.path,
        "size": chunk.size,
        "lines": None,
        "encoding": "base64",
        "exists": True,
        "mime_type": mime_type,
    }
    image = {"type": "image", "data": base64.b64encode(chunk.data).decode(), "mimeType": mime_type}
    return Output(data=data, main=shown, images=(image,))
