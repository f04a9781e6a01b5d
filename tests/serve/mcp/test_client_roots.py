"""Roots of real clients: they narrow the workspace, and never widen it."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ListRootsResult, Root

from tests.world import World


async def reads(world: World, roots: list[str], *paths: str) -> list[bool]:
    """Which of the paths a client with these roots can read."""

    async def name_roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_construct(uri=uri) for uri in roots])

    home = world.state.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLREEVE_", "XDG_"))}
    environment = kept | {"HOME": str(home), "TOOLREEVE_STATE_DIR": str(world.state)}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolreeve", "mcp", "--workspace", str(world.workspace)],
        env=environment,
    )
    async with asyncio.timeout(60), Client(server, mode="legacy", list_roots_callback=name_roots) as client:
        return [not (await client.call_tool("read_file", {"path": path})).is_error for path in paths]


@pytest.fixture
def files(world: World) -> dict[str, str]:
    found = {}
    for name in ("top.txt", "one/a.txt", "one/deep/b.txt", "two/c.txt", ".git/config"):
        path = world.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
        found[name] = str(path)
    return found


async def test_one_root_becomes_the_workspace(world: World, files: dict[str, str]) -> None:
    roots = [(world.workspace / "one").as_uri()]

    assert await reads(world, roots, "a.txt", files["one/a.txt"], files["top.txt"], files["two/c.txt"]) == [
        True,
        True,
        False,
        False,
    ]


async def test_several_roots_keep_the_directory_that_holds_them(world: World, files: dict[str, str]) -> None:
    roots = [(world.workspace / "one").as_uri(), (world.workspace / "one" / "deep").as_uri()]

    assert await reads(world, roots, files["one/deep/b.txt"], files["one/a.txt"], files["two/c.txt"]) == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "root", ["file:///", "file:///etc", "https://example.com/", "nonsense", "file://[", "file:///no%00", "../..", ""]
)
async def test_a_root_elsewhere_changes_nothing(world: World, files: dict[str, str], root: str) -> None:
    outside = world.state.parent / "outside.txt"
    outside.write_text("text")

    assert await reads(world, [root], files["top.txt"], str(outside)) == [True, False]


async def test_a_hidden_directory_or_a_link_outwards_is_no_root(
    world: World, files: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.txt").write_text("text")
    (world.workspace / "link").symlink_to(tmp_path / "elsewhere")
    roots = [(world.workspace / ".git").as_uri(), (world.workspace / "link").as_uri()]

    assert await reads(world, roots, files["top.txt"], str(tmp_path / "elsewhere" / "x.txt")) == [True, False]
