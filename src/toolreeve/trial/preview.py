"""Preview of what a trial changed, as a person decides about it.

What could run something by itself comes first and says why. No name or content can hide, reorder or pass for another
part of it, and what is left out is said.
"""

import json
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from toolreeve.core.text_diff import diff
from toolreeve.core.visible import one_line, visible
from toolreeve.trial import tree
from toolreeve.trial.harvest import Alteration, Harvest, TreeChange

MAX_LISTED = 100
MAX_DIFFED = 20
MAX_BYTES = 256 << 10
MAX_CHARACTERS = 64 << 10
_MARKS = {Alteration.CREATE: "A", Alteration.LINK: "A", Alteration.DELETE: "D"}
_RUN_BY_PYTHON = frozenset({"conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "noxfile.py"})
_RUN_BY_BUILDS = frozenset({"makefile", "gnumakefile", "dockerfile", "justfile", "taskfile.yml", "build.rs"})
_AUTOMATION = frozenset({".github", ".gitlab", ".circleci", ".husky", "hooks", ".githooks", ".git-hooks", ".vscode"})

_REPOSITORY_DATA = frozenset({"objects", "logs", "index", "COMMIT_EDITMSG"})


class _Shown(NamedTuple):
    harvest: Harvest
    change: TreeChange
    danger: str


def preview(harvests: Sequence[Harvest]) -> str:
    """The changes that matter as a list, then the text of each as a diff. Blocks; the layers must still be open."""
    kept = [(harvest, change) for harvest in harvests for change in harvest.kept]
    found = [_Shown(*each, _danger(*each)) for each in kept if not _is_repository_data(each[1].path)]
    found.sort(key=lambda each: (not each.danger, each.change.path))
    lines = [_line(each) for each in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        lines.append(f"… and {len(found) - MAX_LISTED} more changes")
    if data := len(kept) - len(found):
        lines.append(f"M .git ({data} changes of objects, logs and the index of the repository)")
    if scratch := sum(not change.is_directory for harvest in harvests for change in harvest.scratch):
        lines.append(f"(discarded: {scratch} files of caches or ignored by git)")
    return "\n".join([*lines, *_diffs(found)])


def _is_repository_data(path: str) -> bool:
    """Git's own records, which nobody reads as files: what they mean shows in the branches and the work tree."""
    top, _, rest = path.partition("/")
    return top == ".git" and rest.split("/")[0] in _REPOSITORY_DATA


def _line(shown: _Shown) -> str:
    change = shown.change
    words = [shown.danger] if shown.danger else []
    if change.note:
        words.append(change.note)
    if change.kind is Alteration.DELETE and change.is_directory:
        words.append(f"with {change.count} entries")
    elif change.removes_directory:
        words.append(f"replaces {change.count} entries")
    if change.kind is Alteration.MODE:
        words.append(f"now {stat.filemode(change.mode)}")
    if stat.S_ISLNK(change.mode) and change.after:
        words.append(f"→ {change.after.removeprefix('link:')}")
    if change.links_to:
        words.append(f"the same file as {change.links_to}")
    remark = f" ({one_line(', '.join(words))})" if words else ""
    mark = "M" if change.kind is Alteration.LINK and change.old is not None else _MARKS.get(change.kind, "M")
    return f"{'! ' if shown.danger else ''}{mark} {one_line(change.path)}{remark}"


def _danger(harvest: Harvest, change: TreeChange) -> str:
    """Why a change might run something by itself or reach further than it seems, or nothing."""
    if change.kind is Alteration.DELETE:
        return ""
    names = change.path.casefold().split("/")
    if stat.S_ISLNK(change.mode):
        return "leads out of the workspace" if _leads_out(harvest, change) else ""
    if not stat.S_ISREG(change.mode):
        return ""
    if names[-1] in _RUN_BY_PYTHON or names[-1].endswith(".pth"):
        return "Python runs it"
    if names[-1] in _RUN_BY_BUILDS:
        return "builds run it"
    if _AUTOMATION.intersection(names[:-1]):
        return "hooks, editors or CI run it"
    if names[-1] == "package.json" and _scripts(harvest, change, is_new=True) != _scripts(
        harvest, change, is_new=False
    ):
        return "npm runs its scripts"
    was_executable = change.old is not None and stat.S_ISREG(change.old.st_mode) and change.old.st_mode & 0o111
    return "can be executed" if change.mode & 0o111 and not was_executable else ""


def _leads_out(harvest: Harvest, change: TreeChange) -> bool:
    """By its spelling: a link may also lead out through another link."""
    target = (change.after or "").removeprefix("link:")
    root = harvest.layer.root
    end = os.path.normpath(os.path.join(root, os.path.dirname(change.path), target))
    return end != root and not end.startswith(f"{root.rstrip('/')}/")


def _scripts(harvest: Harvest, change: TreeChange, *, is_new: bool) -> object:
    text = _text(harvest, change, is_new=is_new)
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return text
    return found.get("scripts") if isinstance(found, dict) else text


def _diffs(found: Sequence[_Shown]) -> list[str]:
    texts: list[str] = []
    size = 0
    shown = 0
    for each in found:
        if size > MAX_CHARACTERS or len(texts) >= MAX_DIFFED:
            break
        shown += 1
        if text := _diff(each.harvest, each.change):
            texts.append(text)
            size += len(text)
    if shown < len(found):
        texts.append(f"(the text of {len(found) - shown} more changes is not shown)")
    return texts


def _diff(harvest: Harvest, change: TreeChange) -> str:
    if change.kind in (Alteration.MODE, Alteration.LINK) or not stat.S_ISREG(change.mode):
        return ""
    was_file = change.old is not None and stat.S_ISREG(change.old.st_mode)
    before = _text(harvest, change, is_new=False) if was_file else ""
    after = "" if change.kind is Alteration.DELETE else _text(harvest, change, is_new=True)
    if before is None or after is None:
        old, new = (0 if found is None else found.st_size for found in (change.old, change.new))
        return f"(binary or too large: {one_line(change.path)}, {old} → {new} bytes)"
    text = diff(before if was_file else None, after, one_line(change.path))
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]}\n(cut off: {len(text) - MAX_CHARACTERS} more characters)"
    return visible(text)


def _text(harvest: Harvest, change: TreeChange, *, is_new: bool) -> str | None:
    """The text in the layer or in the real tree; None where it is no text, or too large to be shown."""
    with ExitStack() as held:
        top = harvest.layer.upper
        if not is_new:
            top = os.open(harvest.layer.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, top)
        try:
            descriptor = held.enter_context(tree.file_at(top, change.path))
            data = os.pread(descriptor, MAX_BYTES + 1, 0)
            return None if len(data) > MAX_BYTES or b"\0" in data else data.decode()
        except (OSError, UnicodeDecodeError):
            return None
