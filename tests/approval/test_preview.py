from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.approval.people import call
from toolreeve.approval.preview import MAX_BYTES, apply_edits, preview, previewer
from toolreeve.core.action import Action
from toolreeve.core.text_diff import MAX_LINES, diff
from toolreeve.guard.files.workspace import WorkspaceFiles


def reading(text: str | None) -> "Reading":
    return Reading(text)


class Reading:
    def __init__(self, text: str | None) -> None:
        self.text = text

    def __call__(self, path: str) -> str | None:
        assert path == "a.txt"
        return self.text


def test_a_write_is_shown_against_what_is_there() -> None:
    action = call(args={"path": "a.txt", "content": "one\nTWO\n"})

    assert preview(action, reading("one\ntwo\n")).splitlines() == [
        "--- a.txt",
        "+++ a.txt",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+TWO",
    ]


def test_a_new_file_is_shown_as_all_new() -> None:
    action = call(args={"path": "a.txt", "content": "one"})

    assert preview(action, reading(None)).splitlines() == ["--- (nothing)", "+++ a.txt", "@@ -0,0 +1 @@", "+one"]


def test_an_append_is_shown_after_what_is_there() -> None:
    action = call(args={"path": "a.txt", "content": "two\n", "append": True})

    assert "+two" in preview(action, reading("one\n"))
    assert "-one" not in preview(action, reading("one\n"))


def test_edits_are_shown_as_they_would_come_out() -> None:
    action = call("edit_file", {"path": "a.txt", "edits": [{"old": "two", "new": "2"}, {"old": "2", "new": "zwei"}]})

    assert preview(action, reading("one\ntwo\n")).splitlines()[-2:] == ["-two", "+zwei"]


@pytest.mark.parametrize("edits", [[{"old": "x", "new": "y"}], [{"old": "o", "new": ""}], [{"old": ""}], [5]])
def test_edits_that_do_not_fit_exactly_once_have_no_preview(edits: list[object]) -> None:
    assert apply_edits("one two", edits) is None
    assert preview(call("edit_file", {"path": "a.txt", "edits": edits}), reading("one two")) == ""


def test_other_tools_have_no_preview() -> None:
    assert preview(call("bash", {"command": "ls"}), reading("")) == ""


def test_a_change_far_down_a_big_file_keeps_its_line_number() -> None:
    lines = [f"line {number}" for number in range(100_000)]
    after = [*lines[:70_000], "changed", *lines[70_001:]]

    shown = diff("\n".join(lines), "\n".join(after), "big").splitlines()

    assert shown[2] == "@@ -69998,7 +69998,7 @@"
    assert shown[6:8] == ["-line 70000", "+changed"]


def test_what_is_too_different_to_compare_says_so() -> None:
    many = "\n".join(map(str, range(MAX_LINES * 2)))

    assert diff("", many, "a") == f"(too different to compare: 0 lines before, {MAX_LINES * 2} after)"


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_a_diff_turns_the_one_text_into_the_other(old: list[str], new: list[str]) -> None:
    lines = diff("\n".join(old), "\n".join(new), "f").splitlines()[2:]
    removed = sorted(line[1:] for line in lines if line.startswith("-"))
    added = sorted(line[1:] for line in lines if line.startswith("+"))

    assert sorted(new + removed) == sorted(old + added)


def test_a_character_that_breaks_lines_unseen_stays_in_the_diff() -> None:
    assert "+a\u2028b" in diff("", "a\u2028b", "f").split("\n")


async def test_a_preview_reads_the_workspace_and_says_what_it_cannot_show(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    (tmp_path / "big.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (tmp_path / "link").symlink_to("/etc/passwd")
    show = previewer(WorkspaceFiles(tmp_path))

    def writing(path: str) -> Action:
        return call(args={"path": path, "content": "new\n"})

    assert (await show(writing("a.txt"))).splitlines()[-2:] == ["-old", "+new"]
    assert (await show(writing("none.txt"))).splitlines()[-1] == "+new"
    assert "larger than 1024 KB" in await show(writing("big.txt"))
    assert "no preview" in await show(writing("link"))
    assert "root:" not in await show(writing("link"))
