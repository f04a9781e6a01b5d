import os

import pytest

from tests.tools.file_tools import FileTools
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.runtime.builtin import FILE_TOOLS


def test_the_file_tools_are_as_dangerous_as_documented() -> None:
    assert {tool.name: tool.spec.danger for tool in FILE_TOOLS if tool.name != "undo"} == {
        "read_file": DangerLevel.SAFE,
        "file_exists": DangerLevel.SAFE,
        "list_directory": DangerLevel.SAFE,
        "search_files": DangerLevel.SAFE,
        "search_text": DangerLevel.SAFE,
        "search_directory": DangerLevel.SAFE,
        "write_file": DangerLevel.MEDIUM,
        "edit_file": DangerLevel.MEDIUM,
        "move_file": DangerLevel.MEDIUM,
        "delete_file": DangerLevel.HIGH,
    }
    assert {tool.spec.category for tool in FILE_TOOLS} == {"file"}
    assert {tool.spec.read_only for tool in FILE_TOOLS if tool.spec.danger is DangerLevel.SAFE} == {True}


def test_effects_name_resolved_paths_and_never_raise(file_tools: FileTools) -> None:
    file_tools.write("real/a.txt")
    (file_tools.root / "link").symlink_to("real")

    assert file_tools.effects("read_file", path="link/a.txt") == [f"read:{file_tools.root}/real/a.txt"]
    assert file_tools.effects("write_file", path="new/b.txt", content="") == [f"write:{file_tools.root}/new/b.txt"]
    assert file_tools.effects("delete_file", path="/etc/passwd") == ["delete:/etc/passwd"]
    assert file_tools.effects("move_file", source="a", destination="../b") == [
        f"delete:{file_tools.root}/a",
        f"write:{file_tools.root.parent}/b",
        f"read:{file_tools.root}/a",
    ]
    assert file_tools.effects("read_file", path="a\0b") == [f"read:{file_tools.root}/a\0b"]


class TestReading:
    def test_a_small_file_is_returned_whole(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "one\ntwo\n")

        output = file_tools.call("read_file", path="a.txt")

        assert output.data == {
            "content": "one\ntwo\n",
            "path": f"{file_tools.root}/a.txt",
            "size": 8,
            "lines": 2,
            "encoding": "utf-8",
            "exists": True,
        }
        assert output.main == "one\ntwo\n"
        assert not output.truncated

    @pytest.mark.parametrize(
        ("content", "lines"), [("", 0), ("x", 1), ("x\n", 1), ("x\ny", 2), ("\n", 1), ("a\r\nb\r\n", 2)]
    )
    def test_lines_are_counted_and_line_ends_kept(self, file_tools: FileTools, content: str, lines: int) -> None:
        file_tools.write("a.txt", content)

        data = file_tools.data("read_file", path="a.txt")

        assert (data["content"], data["lines"]) == (content, lines)

    def test_a_window_of_lines_says_what_comes_next(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "".join(f"line {n}\n" for n in range(1, 11)))

        output = file_tools.call("read_file", path="a.txt", offset=3, limit=2)

        assert output.main == "line 3\nline 4\n"
        assert output.truncated
        assert output.data["next"] == 'read_file(path="a.txt", offset=5, limit=2)'
        assert file_tools.follow(output.data["next"]).main == "line 5\nline 6\n"

    def test_the_last_window_is_not_cut(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "1\n2\n3")

        output = file_tools.call("read_file", path="a.txt", offset=2, limit=2)

        assert (output.main, output.truncated, "next" in output.data) == ("2\n3", False, False)

    def test_a_window_beyond_the_end_is_refused_with_the_number_of_lines(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "1\n2\n3")

        assert file_tools.failure("read_file", path="a.txt", offset=9) == (
            ErrorCode.INVALID_PARAMS,
            "/offset: line 9 is beyond the end: the file has 3 lines",
        )

    @pytest.mark.parametrize("args", [{"offset": -1}, {"limit": 0}, {"byte": -1}, {"byte": 1, "offset": 1}])
    def test_a_window_that_makes_no_sense_is_refused(self, file_tools: FileTools, args: dict[str, int]) -> None:
        file_tools.write("a.txt", "x")

        assert file_tools.failure("read_file", path="a.txt", **args)[0] is ErrorCode.INVALID_PARAMS

    def test_pages_of_a_long_file_add_up_to_it(self, file_tools: FileTools) -> None:
        content = "".join(f"{n:08} äöü\n" for n in range(60_000))
        file_tools.write("long.txt", content)

        output = file_tools.call("read_file", path="long.txt")
        pages = [output.main]
        while output.truncated:
            assert output.data["lines"] == 60_000
            output = file_tools.follow(output.data["next"])
            pages.append(output.main)

        assert len(pages) > 2
        assert "".join(pages) == content

    def test_pages_of_one_long_line_add_up_to_it(self, file_tools: FileTools) -> None:
        content = "äöü€𝄞" * 60_000
        file_tools.write("long.txt", content)

        output = file_tools.call("read_file", path="long.txt")
        assert "byte=" in output.data["next"]
        pages = [output.main]
        while output.truncated:
            output = file_tools.follow(output.data["next"])
            pages.append(output.main)

        assert "".join(pages) == content

    def test_a_file_of_gigabytes_answers_at_once(self, file_tools: FileTools) -> None:
        with (file_tools.root / "huge.log").open("wb") as huge:
            huge.write(b"first\n")
            huge.truncate(5 * 1024**3)

        output = file_tools.call("read_file", path="huge.log", limit=1)

        assert output.main == "first\n"
        assert (output.data["size"], output.data["lines"], output.truncated) == (5 * 1024**3, None, True)
        assert len(file_tools.call("read_file", path="huge.log").main) <= 256 * 1024

    def test_bytes_that_are_no_text_are_refused_with_a_hint(self, file_tools: FileTools) -> None:
        file_tools.write("a.bin", b"\x89PNG\0\0\xff")
        file_tools.write("wide.txt", "hello".encode("utf-16"))
        file_tools.write("latin.txt", "größe".encode("latin-1"))

        for path, hint in (("a.bin", "binary"), ("wide.txt", "encoding='utf-16'"), ("latin.txt", "latin-1")):
            code, message = file_tools.failure("read_file", path=path)
            assert code is ErrorCode.READ_ERROR
            assert hint in message

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32", "cp1252", "UTF8", "utf-8-sig", "cp037"])
    def test_other_encodings_are_read_whole_and_by_lines(self, file_tools: FileTools, encoding: str) -> None:
        file_tools.write("a.txt", "größe\nzwei\ndrei\n".encode(encoding))

        assert file_tools.call("read_file", path="a.txt", encoding=encoding).main == "größe\nzwei\ndrei\n"
        output = file_tools.call("read_file", path="a.txt", encoding=encoding, offset=2, limit=1)
        assert output.main == "zwei\n"
        assert file_tools.follow(output.data["next"]).main == "drei\n"

    @pytest.mark.parametrize(
        "encoding", ["none", "", "rot13", "base64", "idna", "unicode_escape", "a\0b", "../x", "hex"]
    )
    def test_what_is_no_text_encoding_is_refused(self, file_tools: FileTools, encoding: str) -> None:
        file_tools.write("a.txt", "x")

        assert file_tools.failure("read_file", path="a.txt", encoding=encoding)[0] is ErrorCode.INVALID_PARAMS

    def test_the_mark_of_utf_8_is_not_part_of_the_text(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", b"\xef\xbb\xbfhello")

        data = file_tools.data("read_file", path="a.txt")

        assert (data["content"], data["encoding"]) == ("hello", "utf-8-sig")
        assert file_tools.data("read_file", path="a.txt", offset=1, limit=5)["content"] == "hello"


class TestExistence:
    def test_what_is_there_is_distinguished(self, file_tools: FileTools) -> None:
        file_tools.write("dir/a.txt")

        assert file_tools.data("file_exists", path="dir/a.txt") == {
            "exists": True,
            "is_file": True,
            "is_directory": False,
            "path": f"{file_tools.root}/dir/a.txt",
        }
        assert file_tools.data("file_exists", path="dir")["is_directory"]
        assert file_tools.call("file_exists", path="dir").main == "true"
        assert file_tools.call("file_exists", path="none/at/all").main == "false"
        assert not file_tools.data("file_exists", path="none")["exists"]

    def test_a_forbidden_path_is_refused_not_denied_to_exist(self, file_tools: FileTools) -> None:
        assert file_tools.failure("file_exists", path="/etc/passwd")[0] is ErrorCode.PATH_FORBIDDEN


class TestListing:
    def test_a_directory_is_listed(self, file_tools: FileTools) -> None:
        file_tools.write("b.txt", "four")
        file_tools.write("a/c.txt")
        file_tools.write(".hidden")

        output = file_tools.call("list_directory")

        assert output.data == {
            "path": str(file_tools.root),
            "files": ["b.txt"],
            "directories": ["a"],
            "entries": [
                {"name": "a", "is_dir": True, "size": output.data["entries"][0]["size"]},
                {"name": "b.txt", "is_dir": False, "size": 4},
            ],
            "count": 2,
            "total": 2,
        }
        assert output.main == ["a", "b.txt"]
        assert file_tools.call("list_directory", include_hidden=True).main == [".hidden", "a", "b.txt"]

    def test_a_tree_is_listed_shallow_things_first(self, file_tools: FileTools) -> None:
        file_tools.write("a/b/c.txt")
        file_tools.write("z.txt")

        assert file_tools.call("list_directory", recursive=True).main == ["a", "z.txt", "a/b", "a/b/c.txt"]

    @pytest.mark.parametrize("recursive", [False, True])
    def test_pages_of_a_large_directory_add_up_to_it(self, file_tools: FileTools, recursive: bool) -> None:
        names = [f"{n:05}" for n in range(2500)]
        for name in names:
            file_tools.write(f"d/{name}")

        output = file_tools.call("list_directory", path="d", recursive=recursive)
        seen = list(output.main)
        assert (output.data["count"], output.truncated) == (1000, True)
        while output.truncated:
            output = file_tools.follow(output.data["next"])
            seen += output.main

        assert seen == names

    def test_a_name_that_is_no_text_is_spelled_out(self, file_tools: FileTools) -> None:
        os.close(os.open(os.fsencode(file_tools.root) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))

        assert file_tools.call("list_directory").main == ["caf\\xe9"]

    def test_a_missing_directory_is_recoverable(self, file_tools: FileTools) -> None:
        assert file_tools.failure("list_directory", path="none") == (
            ErrorCode.DIR_NOT_FOUND,
            "Directory not found: none",
        )
