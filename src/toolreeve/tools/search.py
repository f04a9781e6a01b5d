"""Search tools: files by name, lines by pattern, directories by name.

Bounded in time, entries and results. Links are not followed and sensitive files not read. A truncated result says so
and how to continue.
"""

from collections.abc import Iterator
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Bounds, Files, Kind, Reader
from toolreeve.core.result import Output
from toolreeve.core.secrets.paths import is_sensitive
from toolreeve.core.tool import tool
from toolreeve.tools.effects import naming, next_call, reading_below, shown_name
from toolreeve.tools.globs import compile_glob, compile_regex, wants_hidden

MAX_FILES = 100
MAX_LINES = 200
MAX_DIRECTORIES = 5
MAX_DEPTH = 3
MAX_LINE = 500
MAX_SEARCHED = 64 * 1024 * 1024
MAX_NAMED = 20
MAX_BYTES = 1024 * 1024 * 1024
SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"})
_PIECE = 4 * 1024 * 1024


@tool(danger=DangerLevel.SAFE, category="file", effects=naming())
def search_files(ctx: Context, pattern: str, path: str = ".", after: str = "") -> Output:
    """Find files by a glob pattern such as `*.py` (at any depth) or `src/**/*.json`. Shallow matches come first.

    Args:
        pattern: `*` and `?` match within a name, `**` across directories, `{a,b}` either.
        path: The directory to search, relative to the workspace or absolute within it.
        after: Continue a truncated search after this match.
    """
    _check_pattern(pattern)
    fits = compile_glob(pattern)
    walk = ctx.files.walk(path, hidden=wants_hidden(pattern), skip=_skipped(pattern))
    passed = _order(after) if after else None
    matches: list[str] = []
    more = False
    for found in walk:
        if found.is_dir or not fits(found.path) or (passed and _order(found.path) <= passed):
            continue
        if len(matches) == MAX_FILES:
            more = True
            break
        matches.append(shown_name(found.path))
    data: dict[str, Any] = {"pattern": pattern, "path": walk.path, "matches": matches, "count": len(matches)}
    following = next_call("search_files", pattern=pattern, path=path, after=matches[-1]) if more else ""
    return _bounded(data, matches, following, walk.cut)


def _check_pattern(pattern: str) -> None:
    """A pattern that can match nothing is a mistake, not an empty result."""
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError(
            ErrorCode.INVALID_PARAMS, "/pattern: is relative to /path, without `..`; name the directory in /path"
        )
    if pattern.count("[") > pattern.count("]"):
        raise ToolError(ErrorCode.INVALID_PARAMS, "/pattern: a `[` is not closed; write `[[]` for the character itself")


def _skipped(pattern: str) -> frozenset[str]:
    """Directories that are skipped unless the pattern names them."""
    return SKIPPED - set(pattern.split("/"))


def _order(path: str) -> tuple[int, list[str]]:
    parts = path.split("/")
    return len(parts), parts


_MAX_NAMED = 20
_SENSITIVE_NOTE = "these files may hold secrets and were not searched; search one by its path, which needs approval"
_NOT_SEARCHED = f"files above {MAX_SEARCHED // 1024 // 1024} MB were not searched; read them in pages with read_file"


def _bounded(data: dict[str, Any], main: Any, following: str, cut: str) -> Output:
    early = cut if cut not in ("", "depth") else ""
    if following or early:
        data["truncated"] = True
    if following:
        data["next"] = following
    elif early:
        data["note"] = f"the search ended early: its limit of {early} was reached; search a subdirectory"
    return Output(data=data, main=main, truncated="truncated" in data)


@tool(danger=DangerLevel.SAFE, category="file", effects=reading_below())
def search_text(
    ctx: Context,
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    *,
    ignore_case: bool = False,
    include_hidden: bool = False,
    after: str = "",
) -> Output:
    """Find lines that match a regular expression (RE2 syntax). Binary files, .git and node_modules are skipped.

    Args:
        pattern: The regular expression, matched within each line.
        path: The directory or file to search.
        glob: Only files that match this pattern, such as `*.py`.
        ignore_case: Match regardless of case.
        include_hidden: Include names that begin with a dot.
        after: Continue a truncated search after this `path:line`.
    """
    expression = compile_regex(f"(?m){pattern}", shown=pattern, line_by_line=True, ignore_case=ignore_case)
    search = _TextSearch(expression, after)
    found = ctx.files.stat(path)
    if found is not None and found.kind is Kind.FILE:
        with ctx.files.open(path) as file:
            search.look_into(file, path)
        cut = ""
    else:
        cut = _search_tree(ctx.files, path, glob or "", search, hidden=include_hidden or wants_hidden(glob or ""))
    following = ""
    if search.more:
        last = search.matches[-1]
        following = next_call(
            "search_text",
            pattern=pattern,
            path=path,
            glob=glob,
            ignore_case=ignore_case or None,
            include_hidden=include_hidden or None,
            after=f"{last['path']}:{last['line']}",
        )
    data: dict[str, Any] = {"matches": search.matches, "count": len(search.matches), "files_searched": search.files}
    main = [f"{match['path']}:{match['line']}:{match['text']}" for match in search.matches]
    if search.too_large:
        data |= {"truncated": True, "not_searched": search.too_large, "note": _NOT_SEARCHED}
    if search.sensitive:
        data |= {"sensitive": search.sensitive, "sensitive_note": _SENSITIVE_NOTE}
    return _bounded(data, main, following, cut)


def _search_tree(files: Files, path: str, glob: str, search: "_TextSearch", *, hidden: bool) -> str:
    """Search every matching file, sensitive ones only if the glob names them; returns the limit that ended the search
    early, if any."""
    walk = files.walk(path, hidden=hidden, skip=SKIPPED)
    fits = compile_glob(glob) if glob else None
    names_sensitive = is_sensitive(glob)
    for found in walk:
        if not found.is_file or (fits and not fits(found.path)) or search.has_passed(found.path):
            continue
        if not names_sensitive and is_sensitive(found.path):
            search.skip_sensitive(found.path)
            continue
        if (file := found.open()) is None:
            continue
        with file:
            search.look_into(file, found.path)
        if search.more:
            break
        if search.bytes > MAX_BYTES:
            return "bytes"
    return walk.cut


class _TextSearch:
    """Matching lines collected so far; `more` when there are more than may be returned."""

    def __init__(self, expression: Any, after: str) -> None:
        self._expression = expression
        path, _, line = after.rpartition(":")
        if after and not line.isdecimal():
            raise ToolError(ErrorCode.INVALID_PARAMS, "/after: must be a `path:line` of a match")
        self._after = path
        self._line = int(line or 0)
        self.matches: list[dict[str, Any]] = []
        self.more = False
        self.too_large: list[str] = []
        self.sensitive: list[str] = []
        self.files = 0
        self.bytes = 0

    def has_passed(self, path: str) -> bool:
        return bool(self._after) and _order(path) < _order(self._after)

    def skip_sensitive(self, path: str) -> None:
        if len(self.sensitive) < _MAX_NAMED:
            self.sensitive.append(path)

    def look_into(self, file: Reader, path: str) -> None:
        if b"\0" in file.read(0, 8192):
            return
        if file.size > MAX_SEARCHED:
            self._skip_large(path)
            return
        self.files += 1
        self.bytes += file.size
        least = self._line if path == self._after else 0
        for line, text in self._lines(file):
            if line <= least:
                continue
            if len(self.matches) == MAX_LINES:
                self.more = True
                return
            self.matches.append({"path": shown_name(path), "line": line, "text": _shown_line(text)})

    def _skip_large(self, path: str) -> None:
        if len(self.too_large) < MAX_NAMED:
            self.too_large.append(shown_name(path))

    def _lines(self, file: Reader) -> Iterator[tuple[int, bytes]]:
        """The number and the bytes of each matching line."""
        number = 1
        offset = 0
        while piece := file.read(offset, _PIECE):
            end = len(piece) if offset + len(piece) >= file.size else piece.rfind(b"\n") + 1 or len(piece)
            at = counted = 0
            while at < end and (match := self._expression.search(piece, at, end)):
                start = piece.rfind(b"\n", 0, match.start()) + 1
                number += piece.count(b"\n", counted, start)
                stop = piece.find(b"\n", match.end(), end)
                stop = end if stop < 0 else stop
                if start < end:
                    yield number, piece[start : min(stop, start + 4 * MAX_LINE)]
                counted, at = start, stop + 1
            number += piece.count(b"\n", counted, end)
            offset += end


def _shown_line(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"


@tool(danger=DangerLevel.SAFE, category="file", effects=naming("base"))
def search_directory(ctx: Context, name: str, base: str = ".", max_depth: int = MAX_DEPTH) -> Output:
    """Find directories by name or part of it, at most three levels below an allowed base. Exact names come first.

    Args:
        name: The name or a part of it, in any case.
        base: Where to search: one of the configured search bases or a directory within one; the workspace by default.
        max_depth: How many levels down, 1 to 3.
    """
    if not 1 <= max_depth <= MAX_DEPTH:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/max_depth: must be 1 to {MAX_DEPTH}, got {max_depth}")
    wanted = name.strip("/").casefold()
    if not wanted:
        raise ToolError(ErrorCode.INVALID_PARAMS, "/name: must not be empty")
    walk = ctx.files.walk(base, bounds=Bounds(depth=max_depth, seconds=5.0), skip=SKIPPED, search_base=True)
    fitting = [found.path for found in walk if found.is_dir and wanted in found.name.casefold()]
    exact = [path for path in fitting if path.rpartition("/")[2].casefold() == wanted]
    ranked = exact + [path for path in fitting if path not in set(exact)]
    matches = [shown_name(path) for path in ranked[:MAX_DIRECTORIES]]
    data: dict[str, Any] = {"query": name, "base": walk.path, "matches": matches, "count": len(matches)}
    too_many = len(ranked) > MAX_DIRECTORIES
    if too_many:
        data |= {"truncated": True, "note": f"{len(ranked)} directories match; give more of the name"}
    return Output(data=data, main=matches, truncated=too_many or walk.cut not in ("", "depth"))


SEARCH_TOOLS = (search_files, search_text, search_directory)
