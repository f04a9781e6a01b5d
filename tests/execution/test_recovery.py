from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.execution.recovery import rank, suggest
from toolreeve.guard.files.workspace import WorkspaceFiles


@pytest.fixture
def files(tmp_path: Path) -> Iterator[WorkspaceFiles]:
    root = tmp_path / "work"
    for path in (
        "backend/tests/test_api.py",
        "backend/main.py",
        "other/test_api.py",
        "README.md",
        "src/config.yaml",
        "src/configs/app.yaml",
        ".env",
        ".envx/a",
        "node_modules/test_api.py",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    made = WorkspaceFiles(root)
    yield made
    made.close()


async def missing(files: WorkspaceFiles, path: str) -> tuple[str, ...]:
    with pytest.raises(ToolError) as caught:
        files.read(path, 10)
    return await suggest(caught.value, {"path": path}, files)


async def test_a_file_whose_directory_moved_is_found_with_it(files: WorkspaceFiles) -> None:
    found = await missing(files, "tests/test_api.py")

    assert found[0] == "backend/tests/test_api.py"
    assert found[1] == "other/test_api.py"
    assert "backend/tests" in found


async def test_a_missing_directory_is_found_elsewhere(files: WorkspaceFiles) -> None:
    with pytest.raises(ToolError) as caught:
        files.list("tests", limit=10)

    assert (await suggest(caught.value, {"path": "tests"}, files))[0] == "backend/tests"


@pytest.mark.parametrize(("file", "directory"), [("README.md", "."), ("src/config.yaml", "src")])
async def test_for_a_file_in_place_of_a_directory_its_own_is_suggested(
    files: WorkspaceFiles, file: str, directory: str
) -> None:
    with pytest.raises(ToolError) as caught:
        files.list(file, limit=10)

    assert await suggest(caught.value, {"path": file}, files) == (directory,)


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("readme.md", "README.md"),
        ("REDAME.md", "README.md"),
        ("src/config.yml", "src/config.yaml"),
        ("backend/mian.py", "backend/main.py"),
        ("main.py", "backend/main.py"),
    ],
)
async def test_a_typo_is_recovered(files: WorkspaceFiles, path: str, meant: str) -> None:
    assert (await missing(files, path))[0] == meant


async def test_for_an_absolute_path_a_usable_path_is_suggested(files: WorkspaceFiles) -> None:
    found = await missing(files, f"{files.root}/tests/test_api.py")

    assert files.read(found[0], 10).path == f"{files.root}/backend/tests/test_api.py"


async def test_secrets_are_never_suggested(files: WorkspaceFiles) -> None:
    assert ".env" not in await missing(files, "env")
    assert ".env" not in await missing(files, ".emv")


async def test_other_failures_get_no_suggestions(files: WorkspaceFiles) -> None:
    assert await suggest(ToolError(ErrorCode.READ_ERROR, "broken"), {"path": "README.md"}, files) == ()
    assert await suggest(ToolError(ErrorCode.FILE_NOT_FOUND, "missing"), {}, files) == ()
    assert await suggest(ToolError(ErrorCode.PATH_NOT_FOUND, "missing"), {"path": 7}, files) == ()


async def test_a_path_that_resembles_nothing_gets_no_suggestions(files: WorkspaceFiles) -> None:
    assert await missing(files, "zzzzqqqq.bin") == ()


async def test_a_large_workspace_is_searched_within_bounds(tmp_path: Path) -> None:
    for directory in range(30):
        (tmp_path / f"d{directory}").mkdir()
        for number in range(100):
            (tmp_path / f"d{directory}" / f"file{number}.txt").touch()
    files = WorkspaceFiles(tmp_path)

    found = await missing(files, "file7.txt")
    files.close()

    assert len(found) == 5
    assert found[0] == "d0/file7.txt"


names = st.text("ab.", min_size=1, max_size=4)


@given(wanted=st.lists(names, min_size=1, max_size=4), candidates=st.lists(st.lists(names, min_size=1, max_size=4)))
def test_ranking_only_orders_what_it_is_given(wanted: list[str], candidates: list[list[str]]) -> None:
    paths = ["/".join(parts) for parts in candidates]

    ranked = rank(wanted, paths)

    assert set(ranked) <= set(paths)
    assert len(ranked) == len(set(ranked))
