import asyncio
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.file_tools import FileTools
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.tools.edits import Edit, replace_all, unified_diff


class TestWriting:
    def test_a_file_is_written_and_reported(self, file_tools: FileTools) -> None:
        output = file_tools.call("write_file", path="out/result.txt", content="Hello World")

        assert output.data == {
            "written": True,
            "path": f"{file_tools.root}/out/result.txt",
            "size": 11,
            "mode": "write",
            "existed": False,
            "undoable": False,
        }
        assert (file_tools.root / "out/result.txt").read_text() == "Hello World"

    def test_appending_reports_the_whole_size(self, file_tools: FileTools) -> None:
        file_tools.write("log", "one\n")

        data = file_tools.data("write_file", path="log", content="two\n", append=True)

        assert (data["mode"], data["size"], data["existed"]) == ("append", 8, True)
        assert (file_tools.root / "log").read_text() == "one\ntwo\n"

    def test_text_is_written_byte_for_byte(self, file_tools: FileTools) -> None:
        file_tools.call("write_file", path="a", content="a\r\nb\n")
        file_tools.call("write_file", path="b", content="größe", encoding="latin-1")

        assert (file_tools.root / "a").read_bytes() == b"a\r\nb\n"
        assert (file_tools.root / "b").read_bytes() == "größe".encode("latin-1")

    def test_text_that_the_encoding_cannot_say_is_refused(self, file_tools: FileTools) -> None:
        assert (
            file_tools.failure("write_file", path="a", content="€", encoding="latin-1")[0] is ErrorCode.INVALID_PARAMS
        )
        assert file_tools.failure("write_file", path="a", content="", encoding="none")[0] is ErrorCode.INVALID_PARAMS
        assert not (file_tools.root / "a").exists()


class TestEditing:
    def test_exact_pieces_are_replaced_in_order(self, file_tools: FileTools) -> None:
        file_tools.write("a.py", "one = 1\ntwo = 2\n")
        edits = [{"old": "one = 1", "new": "one = 10"}, {"old": "10\ntwo", "new": "11\ntwo"}]

        output = file_tools.call("edit_file", path="a.py", edits=edits)

        assert (file_tools.root / "a.py").read_text() == "one = 11\ntwo = 2\n"
        assert output.data == {
            "diff": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-one = 1\n+one = 11\n two = 2\n",
            "path": f"{file_tools.root}/a.py",
            "edits": 2,
            "dry_run": False,
            "undoable": False,
        }

    def test_a_dry_run_changes_nothing(self, file_tools: FileTools) -> None:
        file_tools.write("a.py", "x")

        output = file_tools.call("edit_file", path="a.py", edits=[{"old": "x", "new": "y"}], dry_run=True)

        assert "+y" in output.main
        assert (file_tools.root / "a.py").read_text() == "x"

    def test_an_edit_that_fails_leaves_all_undone_and_says_which(self, file_tools: FileTools) -> None:
        file_tools.write("a.py", "alpha\nbeta\nbeta\n")

        missing = file_tools.failure(
            "edit_file", path="a.py", edits=[{"old": "alpha", "new": "x"}, {"old": "alpho", "new": "y"}]
        )
        twice = file_tools.failure("edit_file", path="a.py", edits=[{"old": "beta", "new": "y"}])

        assert missing[0] is twice[0] is ErrorCode.INVALID_PARAMS
        assert "edit 2: the text was not found" in missing[1]
        assert "edit 1: the text was found 2 times (lines 2, 3)" in twice[1]
        assert (file_tools.root / "a.py").read_text() == "alpha\nbeta\nbeta\n"

    def test_the_nearest_line_is_shown_when_nothing_fits(self, file_tools: FileTools) -> None:
        file_tools.write("a.py", "def run(self) -> None:\n    pass\n")

        _, message = file_tools.failure("edit_file", path="a.py", edits=[{"old": "def run(self):", "new": ""}])

        assert "the closest is line 1: 'def run(self) -> None:'" in message

    def test_line_ends_and_the_mark_of_utf_8_stay(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")

        file_tools.call("edit_file", path="a.txt", edits=[{"old": "one\ntwo", "new": "1\n2\n3"}])

        assert (file_tools.root / "a.txt").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n3\r\n"

    def test_edits_at_the_same_time_are_all_made(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "".join(f"<{n}>\n" for n in range(12)))

        async def edit(number: int) -> None:
            await asyncio.to_thread(
                file_tools.call, "edit_file", path="a.txt", edits=[{"old": f"<{number}>", "new": f"[{number}]"}]
            )

        async def all_at_once() -> None:
            await asyncio.gather(*(edit(number) for number in range(4)))

        asyncio.run(all_at_once())

        assert (file_tools.root / "a.txt").read_text() == "".join(
            f"[{n}]\n" if n < 4 else f"<{n}>\n" for n in range(12)
        )

    def test_binary_and_missing_files_are_refused(self, file_tools: FileTools) -> None:
        file_tools.write("a.bin", b"\xff\0")

        assert file_tools.failure("edit_file", path="a.bin", edits=[{"old": "x", "new": ""}])[0] is ErrorCode.READ_ERROR
        assert (
            file_tools.failure("edit_file", path="none", edits=[{"old": "x", "new": ""}])[0] is ErrorCode.FILE_NOT_FOUND
        )

    def test_malformed_edits_are_refused(self, file_tools: FileTools) -> None:
        file_tools.write("a", "x")

        for edits in ([], [{"old": "x"}], [{"old": "", "new": "y"}], [{"old": "x", "new": "y", "more": 1}]):
            assert file_tools.failure("edit_file", path="a", edits=edits)[0] is ErrorCode.INVALID_PARAMS


@given(
    before=st.text("ab\n", max_size=30), old=st.text("ab\n", min_size=1, max_size=3), new=st.text("ab\n", max_size=4)
)
def test_a_replacement_happens_exactly_when_the_piece_is_there_once(before: str, old: str, new: str) -> None:
    places = [at for at in range(len(before)) if before.startswith(old, at)]
    try:
        after = replace_all(before, [Edit(old=old, new=new)])
    except ToolError:
        assert len(places) != 1 or old == new
    else:
        assert len(places) == 1
        assert after == before[: places[0]] + new + before[places[0] + len(old) :]


@given(
    lines=st.lists(st.sampled_from("abc"), max_size=40),
    at=st.integers(0, 40),
    new=st.lists(st.sampled_from("abcd"), max_size=4),
)
def test_a_diff_applied_to_the_old_text_gives_the_new(lines: list[str], at: int, new: list[str]) -> None:
    before = [f"{line}\n" for line in lines]
    after = before[:at] + [f"{line}\n" for line in new] + before[at + 2 :]

    diff = unified_diff("".join(before), "".join(after), "x")

    assert apply(before, diff) == after


def apply(lines: list[str], diff: str) -> list[str]:
    """What `patch` does, for a diff that fits."""
    result, at = [], 0
    for line in diff.splitlines(keepends=True)[2:]:
        if header := re.match(r"@@ -(\d+)(?:,(\d+))?", line):
            start = int(header[1]) - (header[2] != "0")
            result += lines[at:start]
            at = start
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert lines[at] == line[1:]
            result += [lines[at]] if line.startswith(" ") else []
            at += 1
    return result + lines[at:]


def test_deleting_reports_whether_there_was_something(file_tools: FileTools) -> None:
    file_tools.write("a.txt", "x")

    assert file_tools.data("delete_file", path="a.txt") == {
        "deleted": True,
        "existed": True,
        "path": f"{file_tools.root}/a.txt",
        "undoable": False,
    }
    assert file_tools.data("delete_file", path="a.txt")["deleted"] is False


def test_moving_reports_both_ends(file_tools: FileTools) -> None:
    file_tools.write("a.txt", "x")

    data = file_tools.data("move_file", source="a.txt", destination="b/c.txt")

    assert (data["source"], data["destination"]) == (f"{file_tools.root}/a.txt", f"{file_tools.root}/b/c.txt")
    assert (file_tools.root / "b/c.txt").read_text() == "x"


@pytest.mark.parametrize("tool", ["write_file", "delete_file", "edit_file", "move_file"])
def test_nothing_outside_is_changed(file_tools: FileTools, tool: str) -> None:
    outside = file_tools.root.parent / "outside.txt"
    outside.write_text("canary")
    attacks: dict[str, dict[str, Any]] = {
        "write_file": {"path": "../outside.txt", "content": "x"},
        "delete_file": {"path": "../outside.txt"},
        "edit_file": {"path": "../outside.txt", "edits": [{"old": "canary", "new": "x"}]},
        "move_file": {"source": "../outside.txt", "destination": "mine"},
    }

    assert file_tools.failure(tool, **attacks[tool])[0] is ErrorCode.PATH_FORBIDDEN
    assert outside.read_text() == "canary"
