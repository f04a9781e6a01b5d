"""Recovery: suggests existing paths that resemble one that was not found.

Bounded: one listing of the directory and one breadth-first walk of the workspace, both cut off after a few thousand
entries and a fraction of a second. Only paths that a tool may touch are suggested, in a form that can be passed back.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Bounds, Files
from toolreeve.core.threads import run_interruptibly

MAX_SUGGESTIONS = 5
MAX_COMPARED = 2000
NEARBY = Bounds(entries=5_000, depth=1, seconds=0.1)
BOUNDS = Bounds(entries=20_000, depth=12, seconds=0.2)
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
_NOT_FOUND = frozenset({ErrorCode.FILE_NOT_FOUND, ErrorCode.DIR_NOT_FOUND, ErrorCode.PATH_NOT_FOUND})
_PATH_PARAMETERS = ("path", "source", "base", "file", "filename", "directory", "working_dir", "target")


async def suggest(error: ToolError, args: Mapping[str, Any], files: Files) -> tuple[str, ...]:
    """Paths that exist and resemble the one that was not found, the likeliest first."""
    path = _missing_path(error, args)
    if error.code not in _NOT_FOUND or not path:
        return ()
    wants_directory = error.code is ErrorCode.DIR_NOT_FOUND
    found: tuple[str, ...] = await run_interruptibly(lambda: _search(path, files, wants_directory=wants_directory))
    return found


def _missing_path(error: ToolError, args: Mapping[str, Any]) -> str:
    if isinstance(error.detail, Mapping):
        path = error.detail.get("path")
        if isinstance(path, str):
            return path
    return next((args[name] for name in _PATH_PARAMETERS if isinstance(args.get(name), str)), "")


def _search(path: str, files: Files, *, wants_directory: bool) -> tuple[str, ...]:
    wanted = _parts(files.relative(files.target(path)))
    if not wanted:
        return ()
    candidates = dict.fromkeys(_nearby(wanted, files) + _anywhere(files))
    if "/".join(wanted) in candidates:  # it exists, but is not what the tool needs
        if wants_directory:
            return ("/".join(wanted[:-1]) or ".",)
        del candidates["/".join(wanted)]
    likely = (path for path in rank(wanted, list(candidates)) if files.explain(path).decision == "allow")
    return tuple(islice(likely, MAX_SUGGESTIONS))


def _nearby(wanted: Sequence[str], files: Files) -> list[str]:
    """The entries of the wanted path's directory, hidden ones included, if it exists."""
    directory = "/".join(wanted[:-1])
    try:
        found = [each.name for each in files.walk(directory or ".", bounds=NEARBY, hidden=True)]
    except ToolError:
        return []
    return [f"{directory}/{name}" if directory else name for name in found]


def _anywhere(files: Files) -> list[str]:
    try:
        return [found.path for found in files.walk(".", bounds=BOUNDS, skip=SKIPPED)]
    except ToolError:
        return []


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".", "..")]


def rank(wanted: Sequence[str], candidates: Sequence[str]) -> list[str]:
    """The candidates most like the wanted path: the same end of the path first, then a similar name close by."""
    close = _close_names(wanted[-1], candidates)
    scored = _directories(wanted, candidates)
    for path in candidates:
        parts = path.split("/")
        likeness = close.get(parts[-1])
        score = None if likeness is None else _distance(wanted, parts, likeness)
        if score is not None:
            scored.append((score, len(parts), path))
    return list(dict.fromkeys(path for _, _, path in sorted(scored)))


def _close_names(name: str, candidates: Sequence[str]) -> dict[str, float]:
    """The distinct names that resemble the wanted one, each with its likeness from 0 to 1."""
    folded = name.casefold()
    names = dict.fromkeys(path.rpartition("/")[2] for path in candidates)
    near = [each for each in names if abs(len(each) - len(name)) <= max(3, len(name) // 3)][:MAX_COMPARED]
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(b=folded, autojunk=False)
    likeness: dict[str, float] = {}
    for each in near:
        matcher.set_seq1(each.casefold())
        if matcher.real_quick_ratio() < 0.7 or matcher.quick_ratio() < 0.7:
            continue
        ratio = matcher.ratio()
        if ratio >= 0.7:
            likeness[each] = 1.0 if each == name else min(ratio, 0.99)
    return likeness


def _distance(wanted: Sequence[str], parts: Sequence[str], likeness: float) -> float | None:
    """Smaller is likelier: by the name, the directories shared at the end, those shared at the start."""
    if likeness < 0.8 and list(wanted[:-1]) != list(parts[:-1]):
        return None  # a merely similar name is worth showing only in the same directory
    end = _shared(list(wanted[-2::-1]), list(parts[-2::-1]))
    start = _shared(list(wanted[:-1]), list(parts[:-1]))
    return (1 - likeness) * 4 - end - start * 0.5


def _shared(first: Sequence[str], second: Sequence[str]) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _directories(wanted: Sequence[str], candidates: Sequence[str]) -> list[tuple[float, int, str]]:
    """Directories whose path ends like the wanted one's, ranked after everything that resembles the file itself."""
    directory = list(wanted[:-1])
    if not directory:
        return []
    end = "/".join(directory)
    return [(10.0, path.count("/"), path) for path in candidates if path.endswith(f"/{end}")]
