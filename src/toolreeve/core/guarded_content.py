"""Content of guarded files: what a new version makes its program run.

Pure. Only what the former version did not contain counts.
"""

from collections.abc import Callable

from toolreeve.core import git_config
from toolreeve.core.guarded_paths import Content
from toolreeve.core.tool_state import find_programs

JUDGED: frozenset[Content] = frozenset({"config", "modules", "attributes", "state", "lines"})


def find_new_harm(
    content: Content,
    name: str,
    data: bytes,
    former: bytes | None,
    *,
    by: str,
    worktrees: Callable[[str], bool] = lambda _: False,
) -> str | None:
    """Why a file of a kind in `JUDGED` may not get this content, or None. `by` is who obeys it."""
    match content:
        case "config" | "modules":
            return _settings_harm(data, former, worktrees)
        case "attributes":
            new = set(git_config.active_attributes(data)) - set(git_config.active_attributes(former or b""))
            return f"git runs the programs behind {', '.join(sorted(new))}" if new else None
        case _:
            named = find_programs(name.casefold(), data) - find_programs(name.casefold(), former or b"")
            return f"{by}, and it names {', '.join(sorted(named))}" if named else None


def _settings_harm(data: bytes, former: bytes | None, worktrees: Callable[[str], bool]) -> str | None:
    try:
        new = set(git_config.active(data, worktrees=worktrees))
    except git_config.MalformedGitConfig as problem:
        return f"git obeys it, and it cannot be read ({problem})"
    try:
        new -= set(git_config.active(former or b""))
    except git_config.MalformedGitConfig:
        return "git obeys it, and its former content could not be read"
    return f"git obeys it, and it sets {', '.join(sorted({each.name for each in new}))}" if new else None
