"""Programs named in small state files that version control tools read back.

Pure. Findings are compared with those of the file's former content, so only new ones count. A file of unknown format
counts as a whole.
"""

import re
from collections.abc import Callable, Mapping

from toolreeve.core import git_config

_STRATEGIES = frozenset("ort recursive resolve octopus ours subtree".split())
"""Git takes any other name as the program `git-merge-…`, and one with a slash as a path."""

_INERT_IN_HGRC = frozenset({("paths", "default"), ("paths", "default-push"), ("ui", "username")})
_INERT_IN_BRANCH_CONF = frozenset(
    "parent_location push_location submit_branch public_branch bound bound_location nickname append_revisions_only"
    " last_revno stacked_on_location".split()
)


def find_programs(name: str, data: bytes) -> frozenset[str]:
    """Entries of a file with this casefolded name that make its tool run a program or access files elsewhere."""
    text = data.decode("utf-8", "surrogateescape")
    return frozenset(_READERS.get(name, _read_remote)(text))


def _read_todo(text: str) -> list[str]:
    """The commands of a rebase; git reads no other form of `exec`."""
    return re.findall(r"(?m)^[ \t]*((?:x|exec)(?:[ \t].*|$))", text)


def _read_strategy(text: str) -> list[str]:
    strategy = text.strip()
    return [] if strategy in _STRATEGIES or not strategy else [f"the strategy {strategy!r}"]


def _read_options(text: str) -> list[str]:
    """The options of a cherry-pick or revert in progress."""
    try:
        settings = git_config.parse(text.encode("utf-8", "surrogateescape"))
    except git_config.MalformedGitConfig as problem:
        return [f"a file that cannot be read ({problem})"]
    return [found for each in settings if each.key == "strategy" for found in _read_strategy(each.value or "")]


def _read_resolutions(text: str) -> list[str]:
    """The files whose conflicts `rerere` records: git copies them into the repository, wherever they are."""
    paths = [record.partition("\t")[2] for record in text.split("\0") if record]
    return [f"the file {path!r}" for path in paths if path.startswith("/") or ".." in path.split("/")]


def _read_remote(text: str) -> list[str]:
    """A remote in a separate file, as git wrote them before it had settings."""
    urls = [line.removeprefix("URL:").strip() for line in text.splitlines()]
    return [f"the address {url!r}" for url in urls if not git_config.is_plain_url(url)]


def _read_versions(text: str) -> list[str]:
    """asdf runs a tool's programs from `path:`."""
    lines = (line.partition("#")[0] for line in text.splitlines())
    return [word for line in lines for word in line.split() if word.startswith("path:")]


def _read_hgrc(text: str) -> list[str]:
    found: list[str] = []
    section = ""
    for line in filter(_is_setting, text.splitlines()):
        if header := re.fullmatch(r"\[([^\[\]]+)\]\s*", line):
            section = header[1]
            continue
        key, equals, value = line.partition("=")
        is_inert = equals and (section, key.strip()) in _INERT_IN_HGRC and git_config.is_plain_url(value.strip())
        if not is_inert or "ssh://-" in value:
            found.append(f"{section}.{key.strip()}")
    return found


def _read_branch_conf(text: str) -> list[str]:
    keys = (line.partition("=")[0].strip() for line in filter(_is_setting, text.splitlines()))
    return [key for key in keys if key not in _INERT_IN_BRANCH_CONF]


def _is_setting(line: str) -> bool:
    return bool(line.strip()) and line[0] not in "#;"


_READERS: Mapping[str, Callable[[str], list[str]]] = {
    "git-rebase-todo": _read_todo,
    "todo": _read_todo,
    "strategy": _read_strategy,
    "opts": _read_options,
    "merge_rr": _read_resolutions,
    ".tool-versions": _read_versions,
    "hgrc": _read_hgrc,
    "hgrc-not-shared": _read_hgrc,
    "branch.conf": _read_branch_conf,
}
