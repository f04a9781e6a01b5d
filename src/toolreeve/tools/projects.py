"""Project detection: Python and Node, by files; nothing is run.

A target is `backend`, `frontend`, `all`, or a path: then the project around it is meant, and of it only that path.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files, Kind

Language = Literal["python", "node"]

PLACES: Mapping[Language, Sequence[str]] = {
    "python": ("backend", "server", "api", "."),
    "node": ("frontend", "web", "client", "ui", "app", "."),
}
_TARGETS: Mapping[str, Sequence[Language]] = {
    "backend": ("python",),
    "frontend": ("node",),
    "all": ("python", "node"),
}
_PYTHON_MARKERS = (
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "tox.ini",
    "pytest.ini",
    "conftest.py",
)
_NODE_FILES = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte")
_MAX_ENTRIES = 2000
_MAX_MANIFEST = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """`directory` is absolute; `within` is the part of it that is meant, relative to it, empty for all. `entries` are
    the names in it, `manifest` its pyproject.toml or package.json, `programs` the paths of its installed programs."""

    language: Language
    directory: str
    within: str = ""
    entries: frozenset[str] = frozenset()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)

    def program(self, name: str) -> str:
        """The project's own program of that name, or the bare name."""
        return self.programs.get(name, name)


def find(files: Files, target: str) -> list[Project]:
    """The projects that a target means, at least one. Raises ToolError."""
    languages = _TARGETS.get(target)
    found = _around(files, target) if languages is None else _known(files, languages)
    if not found:
        wanted = {"backend": "Python project", "frontend": "package.json"}.get(target, "Python or Node project")
        raise ToolError(
            ErrorCode.PATH_NOT_FOUND,
            f"no {wanted} was found for the target {target!r}",
            suggestions=("name the project's directory as the target, or set the commands under [quality]",),
        )
    return found


def _known(files: Files, languages: Sequence[Language]) -> list[Project]:
    found = []
    for language in languages:
        for place in PLACES[language]:
            entries = names_in(files, place)
            if _is_project(language, entries):
                found.append(_project(files, language, files.resolve(place), entries))
                break
    return found


def _is_project(language: Language, entries: frozenset[str]) -> bool:
    if language == "node":
        return "package.json" in entries
    return any(mark in entries for mark in _PYTHON_MARKERS) or any(name.endswith(".py") for name in entries)


def _around(files: Files, path: str) -> list[Project]:
    """The projects of the nearest directory above the path that is one."""
    stat = files.stat(path)
    if stat is None:
        raise ToolError(ErrorCode.PATH_NOT_FOUND, f"Path not found: {path}")
    root = files.resolve(".")
    if stat.path != root and not stat.path.startswith(root.rstrip("/") + "/"):
        raise ToolError(ErrorCode.PATH_FORBIDDEN, f"{path}: lies outside the workspace")
    directory = stat.path if stat.kind is Kind.DIRECTORY else stat.path.rpartition("/")[0]
    wanted = _language_of(stat.path) if stat.kind is Kind.FILE else None
    while True:
        entries = names_in(files, directory)
        marked = _by_manifest(entries) if directory != root else [each for each in PLACES if _is_project(each, entries)]
        if found := [each for each in marked if wanted in (None, each)]:
            within = stat.path[len(directory) + 1 :]
            return [_project(files, each, directory, entries, within) for each in found]
        if directory == root:
            return [_project(files, wanted, root, entries, stat.path[len(root) + 1 :])] if wanted else []
        directory = directory.rpartition("/")[0]


def _by_manifest(entries: frozenset[str]) -> list[Language]:
    """By manifests alone: a folder of sources is part of the project around it."""
    found: list[Language] = ["python"] if any(mark in entries for mark in _PYTHON_MARKERS[:3]) else []
    return [*found, "node"] if "package.json" in entries else found


def _language_of(path: str) -> Language | None:
    if path.endswith((".py", ".pyi")):
        return "python"
    return "node" if path.endswith(_NODE_FILES) else None


def _project(files: Files, language: Language, directory: str, entries: frozenset[str], within: str = "") -> Project:
    name = "pyproject.toml" if language == "python" else "package.json"
    return Project(
        language=language,
        directory=directory,
        within=within,
        entries=entries,
        manifest=_manifest(files, f"{directory}/{name}") if name in entries else {},
        programs=_programs(files, language, directory),
    )


def _manifest(files: Files, path: str) -> Mapping[str, Any]:
    text = files.read(path, _MAX_MANIFEST).data
    try:
        read = tomllib.loads(text.decode()) if path.endswith(".toml") else json.loads(text)
    except ValueError as problem:
        raise ToolError(ErrorCode.READ_ERROR, f"{files.relative(path)}: {problem}", retryable=False) from None
    return read if isinstance(read, dict) else {}


def _programs(files: Files, language: Language, directory: str) -> Mapping[str, str]:
    """The programs installed in the project's own environment, or in that of the workspace."""
    folders = (".venv/bin", "venv/bin") if language == "python" else ("node_modules/.bin",)
    found: dict[str, str] = {}
    for place in (directory, files.resolve(".")):
        for folder in folders:
            for name in names_in(files, f"{place}/{folder}"):
                found.setdefault(name, f"{place}/{folder}/{name}")
    return found


def names_in(files: Files, path: str) -> frozenset[str]:
    """The names in a directory; empty if there is no such directory or it may not be listed."""
    try:
        listing = files.list(path, limit=_MAX_ENTRIES, hidden=True)
    except ToolError:
        return frozenset()
    return frozenset(entry.name for entry in listing.entries)
