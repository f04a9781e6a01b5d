"""Tools that read files and list directories.

They change nothing, and every result is bounded. A result that was cut says `truncated`, and in `next` the literal call
that continues it.
"""

from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files, Kind
from toolreeve.core.result import Output
from toolreeve.core.threads import run_interruptibly
from toolreeve.core.tool import tool
from toolreeve.tools import documents, images, text
from toolreeve.tools.effects import naming, next_call, reading, shown_name

MAX_ENTRIES = 1000


@tool(danger=DangerLevel.SAFE, category="file", effects=reading(), inline=True)
async def read_file(
    ctx: Context,
    path: str,
    encoding: str = "utf-8",
    offset: int | None = None,
    limit: int | None = None,
    byte: int | None = None,
) -> Output:
    """Read a text file, the text of a .docx or .pdf document, or an image. Long files are returned in pages.

    Args:
        path: The file, relative to the workspace or absolute within it.
        encoding: The encoding of the text.
        offset: The first line to return, counted from 1.
        limit: The maximum number of lines.
        byte: Start at this byte instead of at a line; for lines too long for one page.
    """
    kind = text.find_encoding(encoding)
    if documents.is_document(path):
        document: Output = await run_interruptibly(lambda: _read_document(ctx.files, path, offset, limit, byte))
        return document
    if (image := images.find_type(path)) is not None:
        return images.read(ctx.files, path, image)
    if offset is None and limit is None and byte is None:
        chunk = ctx.files.read(path, text.PAGE_BYTES)
        if chunk.size <= text.PAGE_BYTES:
            content, used = text.decode(chunk.data, kind.name, path)
            return _show(chunk.path, content, chunk.size, text.count_lines(content), used)
    _check_window(offset, limit, byte)
    window: Output = await run_interruptibly(lambda: _read_window(ctx.files, path, kind, offset, limit, byte))
    return window


def _show(path: str, content: str, size: int, lines: int | None, encoding: str) -> Output:
    data = {"content": content, "path": path, "size": size, "lines": lines, "encoding": encoding, "exists": True}
    return Output(data=data, main=content, effects=(Effect(EffectKind.READ, path),))


def _check_window(offset: int | None, limit: int | None, byte: int | None) -> None:
    for name, value, least in (("offset", offset, 0), ("limit", limit, 1), ("byte", byte, 0)):
        if value is not None and value < least:
            raise ToolError(ErrorCode.INVALID_PARAMS, f"/{name}: must be at least {least}, got {value}")
    if byte is not None and offset is not None:
        raise ToolError(ErrorCode.INVALID_PARAMS, "/byte: give either offset or byte, not both")


def _read_window(
    files: Files, path: str, encoding: text.Encoding, offset: int | None, limit: int | None, byte: int | None
) -> Output:
    with files.open(path) as source:
        page = text.read_page(source, path, encoding, line=offset or 1, count=limit, byte=byte)
        return _show_page(page, path, source.path, source.size, limit)


def _read_document(files: Files, path: str, offset: int | None, limit: int | None, byte: int | None) -> Output:
    _check_window(offset, limit, byte)
    with files.open(path) as file:
        if file.size > documents.MAX_DOCUMENT:
            most = documents.MAX_DOCUMENT // 1024 // 1024
            raise ToolError(ErrorCode.READ_ERROR, f"{path}: documents above {most} MB are not read", retryable=False)
        content = documents.read_document(file.read(0, file.size), path) or ""
        source = text.Memory(content.encode())
        page = text.read_page(source, path, text.find_encoding("utf-8"), line=offset or 1, count=limit, byte=byte)
        return _show_page(page, path, file.path, file.size, limit)


def _show_page(page: text.Page, path: str, resolved: str, size: int, limit: int | None) -> Output:
    output = _show(resolved, page.text, size, page.lines, page.encoding)
    if page.next_byte is None:
        return output
    encoding = None if page.encoding in ("utf-8", "utf-8-sig") else page.encoding
    byte = None if page.next_line is not None else page.next_byte
    following = next_call("read_file", path=path, encoding=encoding, offset=page.next_line, limit=limit, byte=byte)
    return Output(data={**output.data, "truncated": True, "next": following}, main=page.text, truncated=True)


@tool(danger=DangerLevel.SAFE, category="file", effects=naming(), inline=True)
async def file_exists(ctx: Context, path: str) -> Output:
    """Tell whether a path exists, and whether it is a file or a directory.

    Args:
        path: The path, relative to the workspace or absolute within it.
    """
    found = ctx.files.stat(path)
    data = {
        "exists": found is not None,
        "is_file": found is not None and found.kind is Kind.FILE,
        "is_directory": found is not None and found.kind is Kind.DIRECTORY,
        "path": found.path if found else ctx.files.target(path),
    }
    return Output(data=data, main="true" if found else "false")


@tool(danger=DangerLevel.SAFE, category="file", effects=naming())
def list_directory(
    ctx: Context, path: str = ".", *, recursive: bool = False, include_hidden: bool = False, after: str = ""
) -> Output:
    """List a directory, sorted by name. `count` is the number of entries returned, `total` the number that exist.

    Args:
        path: The directory, relative to the workspace or absolute within it.
        recursive: Include everything below it, breadth first.
        include_hidden: Include names that begin with a dot.
        after: Start after this name; continues a truncated listing.
    """
    if recursive:
        return _list_tree(ctx.files, path, after, hidden=include_hidden)
    page = ctx.files.list(path, limit=MAX_ENTRIES, after=after, hidden=include_hidden)
    entries = [_entry(each.name, each.size, is_dir=each.is_dir, is_link=each.is_link) for each in page.entries]
    following = None
    if page.more and page.entries:
        following = next_call(
            "list_directory", path=path, include_hidden=include_hidden or None, after=page.entries[-1].name
        )
    return _list_output(page.path, entries, page.total, following, cut=page.more)


def _list_tree(files: Files, path: str, after: str, *, hidden: bool) -> Output:
    walk = files.walk(path, hidden=hidden)
    passed = _order(after) if after else None
    entries: list[dict[str, Any]] = []
    following = None
    last = ""
    for found in walk:
        if passed is not None and _order(found.path) <= passed:
            continue
        if len(entries) == MAX_ENTRIES:
            following = next_call(
                "list_directory", path=path, recursive=True, include_hidden=hidden or None, after=last
            )
            break
        entries.append(_entry(found.path, found.size, is_dir=found.is_dir, is_link=found.is_link))
        last = found.path
    return _list_output(walk.path, entries, None, following, cut=bool(following or walk.cut), why=walk.cut)


def _order(path: str) -> tuple[int, list[str]]:
    """The sort key of a path in a walk: depth, then name."""
    parts = path.split("/")
    return len(parts), parts


def _entry(name: str, size: int, *, is_dir: bool, is_link: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": shown_name(name), "is_dir": is_dir, "size": size}
    return entry | {"is_link": True} if is_link else entry


def _list_output(
    path: str, entries: list[dict[str, Any]], total: int | None, following: str | None, *, cut: bool, why: str = ""
) -> Output:
    names = [entry["name"] for entry in entries]
    data: dict[str, Any] = {
        "path": path,
        "files": [entry["name"] for entry in entries if not entry["is_dir"]],
        "directories": [entry["name"] for entry in entries if entry["is_dir"]],
        "entries": entries,
        "count": len(entries),
        "total": len(entries) if total is None and not cut else total,
    }
    if cut:
        data["truncated"] = True
    if following:
        data["next"] = following
    elif why:
        data["note"] = f"the listing ended early: its limit of {why} was reached; list a subdirectory"
    return Output(data=data, main=names, truncated=cut)


READ_TOOLS = (read_file, file_exists, list_directory)
