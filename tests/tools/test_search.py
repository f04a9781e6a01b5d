import os
from pathlib import Path

import pytest

from tests.tools.file_tools import FileTools
from tests.world import World
from toolreeve.config import Workspace
from toolreeve.core.errors import ErrorCode


@pytest.fixture
def project(file_tools: FileTools) -> FileTools:
    file_tools.write("main.py", "import os\n\ndef main():\n    pass\n")
    file_tools.write("src/app.py", "def run():\n    return 1\n")
    file_tools.write("src/deep/util.py", "def util(): ...\n")
    file_tools.write("src/data.json", "{}")
    file_tools.write("node_modules/x/index.py", "def main(): ...")
    file_tools.write(".git/config.py", "def main(): ...")
    file_tools.write(".github/workflow.yml", "name: main")
    file_tools.write(".env", "SECRET=def main")
    file_tools.write("logo.bin", b"def main\0\xff")
    return file_tools


class TestFiles:
    def test_a_name_is_found_at_any_depth_and_the_shallow_come_first(self, project: FileTools) -> None:
        output = project.call("search_files", pattern="*.py")

        assert output.data == {
            "pattern": "*.py",
            "path": str(project.root),
            "matches": ["main.py", "src/app.py", "src/deep/util.py"],
            "count": 3,
        }
        assert output.main == output.data["matches"]

    @pytest.mark.parametrize(
        ("pattern", "matches"),
        [
            ("src/*.py", ["src/app.py"]),
            ("src/**/*.py", ["src/app.py", "src/deep/util.py"]),
            ("**/*.json", ["src/data.json"]),
            ("*.{json,yml}", ["src/data.json"]),
            (".github/*.yml", [".github/workflow.yml"]),
            ("[ms]ain.py", ["main.py"]),
            ("[!m]*.py", ["src/app.py", "src/deep/util.py"]),
            ("?pp.py", ["src/app.py"]),
            ("*.none", []),
            (".env", []),
        ],
    )
    def test_patterns_mean_what_globs_mean(self, project: FileTools, pattern: str, matches: list[str]) -> None:
        assert project.data("search_files", pattern=pattern)["matches"] == matches

    def test_matches_are_relative_to_where_the_search_began(self, project: FileTools) -> None:
        assert project.data("search_files", pattern="*.py", path="src")["matches"] == ["app.py", "deep/util.py"]

    def test_pages_of_matches_add_up(self, file_tools: FileTools) -> None:
        for number in range(250):
            file_tools.write(f"{number % 3}/{number:03}.txt")

        output = file_tools.call("search_files", pattern="*.txt")
        seen = list(output.main)
        while output.truncated:
            assert output.data["count"] == 100
            output = file_tools.follow(output.data["next"])
            seen += output.main

        assert len(seen) == len(set(seen)) == 250

    def test_a_pattern_made_to_take_forever_does_not(self, file_tools: FileTools) -> None:
        file_tools.write("a" * 200)

        assert file_tools.data("search_files", pattern="*a" * 60 + "b")["matches"] == []

    def test_a_missing_directory_is_recoverable(self, file_tools: FileTools) -> None:
        assert file_tools.failure("search_files", pattern="*", path="none")[0] is ErrorCode.DIR_NOT_FOUND


class TestText:
    def test_matching_lines_have_their_position(self, project: FileTools) -> None:
        output = project.call("search_text", pattern=r"^def \w+\(")

        assert output.data["matches"] == [
            {"path": "main.py", "line": 3, "text": "def main():"},
            {"path": "src/app.py", "line": 1, "text": "def run():"},
            {"path": "src/deep/util.py", "line": 1, "text": "def util(): ..."},
        ]
        assert output.main[0] == "main.py:3:def main():"

    def test_files_can_be_chosen_and_case_ignored(self, project: FileTools) -> None:
        found = project.data("search_text", pattern="DEF", glob="app.*", ignore_case=True)["matches"]

        assert [match["path"] for match in found] == ["src/app.py"]

    def test_one_file_can_be_searched(self, project: FileTools) -> None:
        assert project.data("search_text", pattern="return", path="src/app.py")["matches"] == [
            {"path": "src/app.py", "line": 2, "text": "    return 1"}
        ]

    def test_secrets_are_never_looked_into(self, project: FileTools) -> None:
        (project.root / "innocent").symlink_to(".env")

        assert project.data("search_text", pattern="SECRET", include_hidden=True)["matches"] == []
        assert project.failure("search_text", pattern="SECRET", path=".env")[0] is ErrorCode.PATH_FORBIDDEN

    def test_a_match_stays_within_its_line(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "one\ntwo\nthree\n\nfive")

        assert [m["line"] for m in file_tools.data("search_text", pattern=r"one\s*two")["matches"]] == []
        assert [m["line"] for m in file_tools.data("search_text", pattern=r"[^x]+")["matches"]] == [1, 2, 3, 5]
        assert [m["line"] for m in file_tools.data("search_text", pattern="^$")["matches"]] == [4]
        assert [m["line"] for m in file_tools.data("search_text", pattern="e$")["matches"]] == [1, 3, 5]

    def test_lines_are_numbered_across_large_files(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "filler line\n" * 500_000 + "needle\n" + "filler\n" * 10 + "needle")

        assert [m["line"] for m in file_tools.data("search_text", pattern="needle")["matches"]] == [500_001, 500_012]

    def test_pages_of_matches_add_up(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "x\n" * 150)
        file_tools.write("b.txt", "x\n" * 300)

        output = file_tools.call("search_text", pattern="x")
        seen = list(output.main)
        while output.truncated:
            output = file_tools.follow(output.data["next"])
            seen += output.main

        assert seen == [f"a.txt:{n}:x" for n in range(1, 151)] + [f"b.txt:{n}:x" for n in range(1, 301)]

    def test_a_file_too_large_to_be_searched_is_named(self, file_tools: FileTools) -> None:
        file_tools.write("small.txt", "needle\n")
        file_tools.write("large.log", "needle\n" * 2_000)
        os.truncate(file_tools.root / "large.log", 65 * 1024 * 1024)

        output = file_tools.call("search_text", pattern="needle")

        assert output.main == ["small.txt:1:needle"]
        assert output.truncated
        assert output.data["not_searched"] == ["large.log"]
        assert "read_file" in output.data["note"]

    def test_a_long_line_is_cut(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "x" * 10_000)

        assert len(file_tools.data("search_text", pattern="x")["matches"][0]["text"]) == 501

    @pytest.mark.parametrize("pattern", ["(", "[a", r"(?=x)", r"(a)\1", "*"])
    def test_an_expression_that_cannot_run_in_linear_time_is_refused(self, file_tools: FileTools, pattern: str) -> None:
        assert file_tools.failure("search_text", pattern=pattern)[0] is ErrorCode.INVALID_PARAMS

    def test_an_expression_made_to_take_forever_does_not(self, file_tools: FileTools) -> None:
        file_tools.write("a.txt", "a" * 50_000)

        assert file_tools.data("search_text", pattern="(a+)+$b")["matches"] == []


class TestDirectories:
    def test_exact_names_come_first_then_parts_of_names(self, file_tools: FileTools) -> None:
        for path in ("old_tests/x", "backend/tests/x", "frontend/Tests/x", "a/b/c/tests/x"):
            file_tools.write(path)

        output = file_tools.call("search_directory", name="tests")

        assert output.data == {
            "query": "tests",
            "base": str(file_tools.root),
            "matches": ["backend/tests", "frontend/Tests", "old_tests"],
            "count": 3,
        }

    def test_depth_and_number_are_bounded(self, file_tools: FileTools) -> None:
        for number in range(9):
            file_tools.write(f"match{number}/x")

        output = file_tools.call("search_directory", name="match")

        assert (output.data["count"], output.truncated) == (5, True)
        for depth in (0, 4):
            assert file_tools.failure("search_directory", name="m", max_depth=depth)[0] is ErrorCode.INVALID_PARAMS

    def test_a_base_that_is_not_allowed_is_refused(self, file_tools: FileTools) -> None:
        assert file_tools.failure("search_directory", name="x", base="/etc")[0] is ErrorCode.PATH_FORBIDDEN
        assert file_tools.failure("search_directory", name="x", base="..")[0] is ErrorCode.PATH_FORBIDDEN


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "a/../*", "["])
async def test_a_pattern_that_can_match_nothing_is_refused(world: World, pattern: str) -> None:
    async with world.reeve() as reeve:
        result = await reeve.call("search_files", pattern=pattern)

    assert result.error is not None
    assert result.error.message.startswith("/pattern:")


async def test_outside_the_search_bases_it_speaks_of_them(world: World, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    workspace = Workspace(dir=str(world.workspace), search_allowed_bases=(str(base),))
    async with world.reeve(settings=world.settings(workspace=workspace)) as reeve:
        result = await reeve.call("search_directory", name="x", base=str(tmp_path))

    assert result.error is not None
    assert (
        f"outside the search bases (workspace.search_allowed_bases), the first of which is {base}"
        in result.error.message
    )
