"""Files that git settings refer to, and that git obeys or runs.

Pure. An unknown setting counts as one that names a program. Text that git only reads or shows does not count.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from toolreeve.core.git_config import MalformedGitConfig, active, parse
from toolreeve.core.guarded_paths import Content

_TEXT = frozenset(
    "core.excludesfile commit.template blame.ignorerevsfile mailmap.file mailmap.blob diff.orderfile user.signingkey"
    " gpg.ssh.allowedsignersfile gpg.ssh.revocationfile http.cookiefile http.sslcert http.sslcainfo http.sslcapath"
    " core.commentstring format.signaturefile fsck.skiplist safe.directory init.templatedir".split()
)
_TEXT_SECTIONS = frozenset({"url", "remote", "branch", "i18n", "gui", "gitflow", "format", "http", "protocol"})
_RUN_BY_REMOTES = frozenset({"uploadpack", "receivepack", "vcs"})
_TOP = re.compile(r"\$\{?PWD\}?/|(?:\$\(|`)\s*git rev-parse --show-toplevel\s*(?:\)|`)/")
_WORD = re.compile(r"""[^\s'"`;|&<>(){}$=,!]+""")


class GitReference(NamedTuple):
    """A path as the settings write it; relative to the file of settings if `beside`, else to the working tree."""

    path: str
    content: Content | None
    beside: bool = False


def leads(data: bytes) -> Iterator[GitReference]:
    """Settings that git could not read refer to nothing."""
    try:
        found = active(data)
    except MalformedGitConfig:
        return
    for setting in found:
        value = setting.value or ""
        match setting.section, setting.key:
            case (("include" | "includeif"), "path"):
                yield GitReference(value, "config", beside=True)
            case "core", "hookspath":
                yield GitReference(value, None)
            case "core", "attributesfile":
                yield GitReference(value, "attributes")
            case section, key if not _is_text(section, key, value):
                yield from (GitReference(word, "program") for word in _words(value))


def worktree(data: bytes) -> str | None:
    """What `core.worktree` names."""
    try:
        named = [each.value for each in parse(data) if each.name == "core.worktree"]
    except MalformedGitConfig:
        return None
    return named[-1] if named else None


def _is_text(section: str, key: str, value: str) -> bool:
    if section == "remote" and key in _RUN_BY_REMOTES:
        return False
    if section == "alias":
        return not value.startswith("!")
    return section in _TEXT_SECTIONS or f"{section}.{key}" in _TEXT


def _words(value: str) -> set[str]:
    """The words that may be paths: a shell finds the first by its name alone only among the installed programs."""
    text = _TOP.sub("", value)
    words = _WORD.findall(text)
    return {text, *(word for word in words if "/" in word), *(word for word in words[1:] if "." in word)}
