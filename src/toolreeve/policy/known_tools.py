"""Known tools: danger, effects and other names of documented tools.

Pure data. Two kinds of other names are distinct. An alias *is* the tool: a rule for one name holds for the other. A
namesake is what some client calls a similar tool of its own: a deny reaches it, an allow never does, because a custom
tool may have the same name.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import NamedTuple

from toolreeve.core import names
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.core.suggest import hint_similar

MCP_PREFIX = "mcp__"


class ExpectedEffect(NamedTuple):
    """An effect, and the arguments that may name its target: the first one present does. Without one, reads and effects
    beyond one path apply to the workspace."""

    kind: EffectKind
    named_by: tuple[str, ...] = ()
    reach: Reach = Reach.EXACT


Effects = tuple[ExpectedEffect, ...]


@dataclass(frozen=True, slots=True)
class KnownTool:
    """What a tool's name alone implies. `danger` is the highest that a call of it can have."""

    danger: DangerLevel
    category: str
    read_only: bool = False
    effects: Effects = ()


_PATH = ("path", "file_path", "absolute_path", "target_file", "notebook_path", "dir_path", "base")
_URL = ("url", "uri")
_COMMAND = ("command", "cmd")
_MOVED = ("source", "src", "from", "path")
READS: Effects = (ExpectedEffect(EffectKind.READ, _PATH),)
LISTS: Effects = (ExpectedEffect(EffectKind.READ, _PATH, Reach.NAMES),)
SEARCHES: Effects = (ExpectedEffect(EffectKind.READ, _PATH, Reach.BELOW),)
WRITES: Effects = (ExpectedEffect(EffectKind.WRITE, _PATH),)
EDITS: Effects = (*WRITES, *READS)
DELETES: Effects = (ExpectedEffect(EffectKind.DELETE, _PATH),)
MOVES: Effects = (
    ExpectedEffect(EffectKind.DELETE, _MOVED),
    ExpectedEffect(EffectKind.WRITE, ("destination", "dst", "to")),
    ExpectedEffect(EffectKind.READ, _MOVED),
)
RUNS: Effects = (ExpectedEffect(EffectKind.EXEC, _COMMAND),)
CHECKS: Effects = (
    ExpectedEffect(EffectKind.READ, reach=Reach.BELOW),
    ExpectedEffect(EffectKind.WRITE, reach=Reach.BELOW),
    ExpectedEffect(EffectKind.DELETE, reach=Reach.BELOW),
)
FETCHES: Effects = (ExpectedEffect(EffectKind.NET, _URL),)
POSTS: Effects = (*FETCHES, ExpectedEffect(EffectKind.SEND, _URL))
SENDS: Effects = (ExpectedEffect(EffectKind.SEND, ("to", "attendees")),)


def _safe(listed: str, category: str, effects: Effects = ()) -> dict[str, KnownTool]:
    return dict.fromkeys(listed.split(), KnownTool(DangerLevel.SAFE, category, read_only=True, effects=effects))


def _risky(listed: str, danger: DangerLevel, category: str, effects: Effects = ()) -> dict[str, KnownTool]:
    return dict.fromkeys(listed.split(), KnownTool(danger, category, effects=effects))


KNOWN: Mapping[str, KnownTool] = {
    **_safe("read_file", "file", READS),
    **_safe("file_exists list_directory search_files search_directory", "file", LISTS),
    **_safe("search_text", "file", SEARCHES),
    **_risky("write_file", DangerLevel.MEDIUM, "file", WRITES),
    **_risky("edit_file", DangerLevel.MEDIUM, "file", EDITS),
    **_risky("move_file", DangerLevel.MEDIUM, "file", MOVES),
    **_risky("delete_file", DangerLevel.HIGH, "file", DELETES),
    **_risky("undo", DangerLevel.MEDIUM, "file"),
    **_risky("bash", DangerLevel.HIGH, "shell", RUNS),
    **_risky("execute_command", DangerLevel.MEDIUM, "shell", RUNS),
    **_safe("http_get", "http", FETCHES),
    **_risky("http_post http_put", DangerLevel.MEDIUM, "http", POSTS),
    **_risky("http_delete http_request", DangerLevel.HIGH, "http", POSTS),
    **_safe("fetch_url extract_links", "web", FETCHES),
    **_safe("get_system_info list_llm_models get_audit_log read_output", "system"),
    **_safe("calculate get_datetime", "utility"),
    **_safe("search_tools", "meta"),
    **_safe("git_status", "quality", LISTS),
    **_safe("git_diff", "quality", SEARCHES),
    **_risky("run_tests run_lint run_typecheck run_build run_format", DangerLevel.MEDIUM, "quality", CHECKS),
    **_safe("gmail_search gmail_read", "mail"),
    **_risky("gmail_send", DangerLevel.HIGH, "mail", SENDS),
    **_safe("calendar_list_events calendar_get_event", "calendar"),
    **_risky("calendar_create_event", DangerLevel.MEDIUM, "calendar", SENDS),
    **_safe("linkedin_jobs linkedin_job_detail", "jobs"),
    **_safe("anthropic_usage", "usage"),
    **_safe("system-info__system_info system-info__disk_info system-info__network_info", "system"),
    # Tools of agent clients, under their own names.
    **_safe("NotebookRead read_many_files view_image", "client", READS),
    **_safe("list_dir glob file_search", "client", LISTS),
    **_safe("search_file_content grep_search codebase_search fetch_rules", "client", SEARCHES),
    **_safe("WebSearch google_web_search web_search", "client"),
    **_safe("web_fetch", "client", FETCHES),
    **_safe("BashOutput TodoRead TodoWrite todo_write write_todos update_plan", "client"),
    **_safe("ExitPlanMode AskUserQuestion ListMcpResourcesTool ReadMcpResourceTool", "client"),
    **_risky("NotebookEdit", DangerLevel.MEDIUM, "client", EDITS),
    **_risky("replace search_replace apply_patch reapply", DangerLevel.MEDIUM, "client", EDITS),
    **_risky("Task Agent Skill SlashCommand KillShell KillBash save_memory", DangerLevel.MEDIUM, "client"),
    **_risky(
        "run_shell_command run_terminal_cmd local_shell exec_command write_stdin", DangerLevel.HIGH, "client", RUNS
    ),
}

UNDOABLE = frozenset(("write_file", "edit_file", "move_file"))
"""Builtin tools that keep what they replace, and delete nothing for good."""
CONFINABLE = frozenset(("bash", "execute_command", "run_tests", "run_lint", "run_typecheck", "run_build", "run_format"))
"""Builtin tools whose programs the verdict confines."""

ALIASES: Mapping[str, str] = {**names.ALIASES, "terminal/create": "bash"}

NAMESAKES: Mapping[str, str] = {
    "run_shell_command": "bash",
    "run_terminal_cmd": "bash",
    "local_shell": "bash",
    "exec_command": "bash",
    "write_stdin": "bash",
    "apply_patch": "edit_file",
    "replace": "edit_file",
    "search_replace": "edit_file",
    "reapply": "edit_file",
    "NotebookEdit": "edit_file",
    "read_many_files": "read_file",
    "NotebookRead": "read_file",
    "view_image": "read_file",
    "list_dir": "list_directory",
    "glob": "search_files",
    "file_search": "search_files",
    "search_file_content": "search_text",
    "grep_search": "search_text",
    "web_fetch": "fetch_url",
}


def _others(table: Mapping[str, str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for other, name in table.items():
        found.setdefault(name, set()).add(other)
    return {name: frozenset(others) for name, others in found.items()}


_ALIASES_OF = _others(ALIASES)
_NAMESAKES_OF = _others(NAMESAKES)


def canonical(name: str) -> str:
    """The tool's own name; beyond the registry's aliases, also for the names that agent clients use."""
    plain = names.canonical(name)
    return ALIASES.get(plain, plain)


def names_of(name: str, *, server: str | None) -> frozenset[str]:
    """Every name of one registered tool. Tools of servers have no aliases, whatever they call themselves."""
    if server is not None:
        return frozenset((name, MCP_PREFIX + name))
    own = _ALIASES_OF.get(name, frozenset()) | {name}
    if name not in KNOWN:
        return own
    return own | {f"{MCP_PREFIX}{names.BUILTIN_SERVER}__{each}" for each in own}


def suspects_of(name: str, *, server: str | None) -> frozenset[str]:
    """Every name by which a deny reaches the tool: its own, and those of tools that do the same."""
    meant = NAMESAKES.get(canonical(name), canonical(name))
    return names_of(name, server=server) | names_of(meant, server=server) | _NAMESAKES_OF.get(meant, frozenset())


class DangerLevels(MutableMapping[str, DangerLevel]):
    """Danger by tool name: the documented tools, and those that a program adds.

    It answers questions about names. A runtime takes the danger of its tools from their definitions.
    """

    def __init__(self) -> None:
        self._added: dict[str, DangerLevel] = {}

    def __getitem__(self, name: str) -> DangerLevel:
        own = canonical(name)
        if own in self._added:
            return self._added[own]
        return KNOWN[own].danger

    def __setitem__(self, name: str, level: DangerLevel) -> None:
        """Raises ValueError for a documented tool, whose danger is fixed."""
        own = canonical(name)
        if own in KNOWN and level is not KNOWN[own].danger:
            raise ValueError(
                f"the danger of {name!r} is {KNOWN[own].danger.value}; decide about it with a rule instead"
            )
        if own not in KNOWN:
            self._added[own] = DangerLevel(level)

    def __delitem__(self, name: str) -> None:
        del self._added[canonical(name)]

    def __iter__(self) -> Iterator[str]:
        yield from (*KNOWN, *self._added)

    def __len__(self) -> int:
        return len(KNOWN) + len(self._added)


TOOL_DANGER_LEVELS = DangerLevels()


def get_tool_danger_level(name: str) -> DangerLevel:
    """The danger of a documented or added tool, by any of its names. Raises ValueError for an unknown name."""
    try:
        return TOOL_DANGER_LEVELS[name]
    except KeyError:
        raise ValueError(f"unknown tool {name!r}{hint_similar(name, (*TOOL_DANGER_LEVELS, *ALIASES))}") from None


def is_tool_safe(name: str) -> bool:
    """Whether a tool only reads."""
    return get_tool_danger_level(name) is DangerLevel.SAFE


def requires_approval(name: str, danger_threshold: DangerLevel = DangerLevel.MEDIUM) -> bool:
    """Whether the tool is as dangerous as the threshold, or more."""
    return get_tool_danger_level(name) >= danger_threshold
