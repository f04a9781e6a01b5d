"""Toolsets: categories, servers, tool names and globs; `-word` removes.

A word that matches nothing is an error, and so is a text without a word, such as `,` or an unset variable: a toolset
with a typo must not silently be another.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from toolreeve.core.errors import ConfigError
from toolreeve.core.names import canonical
from toolreeve.core.suggest import did_you_mean, find_similar
from toolreeve.core.tool import ToolSpec

ALL = "all"
SPELLINGS = {
    **dict.fromkeys(("files", "filesystem", "fs"), "file"),
    **dict.fromkeys(("command", "commands", "terminal"), "shell"),
    **dict.fromkeys(("qa", "code", "project", "projects"), "quality"),
    **dict.fromkeys(("utilities", "utils", "util"), "utility"),
    **dict.fromkeys(("sys",), "system"),
}


COVERED = frozenset(
    {
        *("http_get", "http_post", "http_put", "http_delete"),
        *("execute_command", "git_status", "git_diff", "get_system_info", "get_datetime", "calculate"),
        *("file_exists", "search_directory", "extract_links", "list_llm_models"),
    }
)
"""Builtin tools whose abilities `http_request`, `bash`, `list_directory`, `search_files` and `fetch_url` have, too.
They can be called, but a list without them leaves a model more room and fewer wrong choices."""


@dataclass(frozen=True, slots=True)
class ToolsetWord:
    text: str

    @property
    def is_glob(self) -> bool:
        return any(mark in self.text for mark in "*?[")

    @property
    def category(self) -> str:
        return SPELLINGS.get(self.text, self.text)

    def matches(self, spec: ToolSpec) -> bool:
        return (
            self.text == ALL
            or self.matches_name(spec)
            or self.text == spec.server
            or self.category == spec.category
            or self._globs(spec)
        )

    def matches_name(self, spec: ToolSpec) -> bool:
        return self.text == spec.name or canonical(self.text) == spec.name

    def _globs(self, spec: ToolSpec) -> bool:
        return self.is_glob and fnmatchcase(spec.name, self.text)


@dataclass(frozen=True, slots=True)
class Toolset:
    """Nothing chosen means everything; a removed tool stays removed whatever else chooses it."""

    chosen: tuple[ToolsetWord, ...] = ()
    removed: tuple[ToolsetWord, ...] = ()

    def includes(self, spec: ToolSpec) -> bool:
        if any(word.matches(spec) for word in self.removed):
            return False
        return not self.chosen or any(word.matches(spec) for word in self.chosen)

    def lists(self, spec: ToolSpec) -> bool:
        """Whether a client sees an included tool in the list without asking for it: builtin tools that another one
        covers are listed only if a word chooses them."""
        return bool(self.chosen) or not is_builtin(spec) or spec.name not in COVERED

    def includes_by_name(self, spec: ToolSpec) -> bool:
        """Whether a word is the tool's own name."""
        return any(word.matches_name(spec) for word in self.chosen)


EVERYTHING = Toolset()


def read_toolset(words: str | Iterable[str]) -> Toolset:
    """From `file,web,-delete_file` or a list of such; an empty list means everything. Raises ConfigError for a text
    without a word."""
    texts = [words] if isinstance(words, str) else list(words)
    named = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if texts and not named:
        fix = "name categories, servers, tools or globs, such as file,web; leave it out to show every tool"
        raise ConfigError(f"{','.join(texts)[:60]!r} names no tools", source="toolset", fix=fix)
    removed = tuple(ToolsetWord(part[1:].strip()) for part in named if part.startswith("-"))
    return Toolset(tuple(ToolsetWord(part) for part in named if not part.startswith("-")), removed)


def check_toolset(toolset: Toolset, specs: Sequence[ToolSpec], servers: Iterable[str] = ()) -> None:
    """Raises ConfigError for a word that matches no tool and cannot match one later: `servers` are the prefixes of
    servers whose tools may not be listed yet."""
    servers = tuple(servers)
    known = {spec.name for spec in specs} | {spec.category for spec in specs} | set(SPELLINGS) | set(servers)
    for word in (*toolset.chosen, *toolset.removed):
        if not any(word.matches(spec) for spec in specs) and not _may_fit_later(word, servers):
            hint = did_you_mean(find_similar(word.text, known, cutoff=0.5)) or "see `toolreeve tools`"
            problem = f"{word.text!r} matches no tool, category or server"
            raise ConfigError(problem, source="toolset", fix=hint)


def _may_fit_later(word: ToolsetWord, servers: Collection[str]) -> bool:
    return any(word.text == server or not server or word.text.startswith(f"{server}__") for server in servers)


def is_builtin(spec: ToolSpec) -> bool:
    return spec.server is None and spec.source.partition(".")[0] == "toolreeve"
