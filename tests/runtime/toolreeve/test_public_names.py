"""The documented names and the documented calls."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import toolreeve
from tests.world import World
from toolreeve import PermissionPolicy, ToolCall

DOCUMENTED = [
    "Toolreeve",
    "tool",
    "mcp_tool",
    "Tool",
    "ToolResult",
    "DangerLevel",
    "get_tool_danger_level",
    "is_tool_safe",
    "requires_approval",
    "PermissionPolicy",
    "PermissionMode",
    "PermissionRule",
    "ExecutionContext",
    "BUILTIN_TOOLS",
    "ToolRegistry",
    "Request",
    "Answer",
    "Settings",
    "Effect",
    "TerminalChannel",
    "SyncToolreeve",
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_documented_names_are_importable_from_the_package(name: str) -> None:
    assert getattr(toolreeve, name) is not None
    assert name in toolreeve.__all__


def test_public_names_have_docstrings() -> None:
    for name in toolreeve.__all__:
        public = getattr(toolreeve, name)
        assert not (inspect.getdoc(public) or f"{name}(").startswith(f"{name}("), name
        for member, value in vars(public).items() if isinstance(public, type) else ():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


async def test_things_show_themselves_in_a_line(world: World) -> None:
    async with world.reeve() as reeve:
        (world.workspace / "a.txt").write_text("word " * 500)
        shown = [
            reeve,
            await reeve.call("read_file", path="a.txt"),
            await reeve.call("read_file", path="none"),
            reeve.tools,
            reeve.tools.get("bash"),
            reeve.configuration.settings,
            reeve.configuration,
            (await reeve.call("read_file", path="a.txt")).meta,
            reeve.explain("write_file", {"path": "a.txt", "content": "word " * 500}),
            ToolCall(tool="write_file", args={"content": "word " * 500}),
            PermissionPolicy(),
        ]

    assert [len(repr(each)) < 200 for each in shown] == [True] * len(shown), list(map(repr, shown))


async def test_the_documented_flat_call_works_and_raises_as_documented(world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")

    async with world.reeve() as reeve:
        flat = await reeve.execute_mcp_tool("mcp__toolreeve_builtin__read_file", {"path": "a.txt"})
        with pytest.raises(PermissionError, match=r"Tool 'write_file' \(danger=medium\) requires approval"):
            await reeve.execute_mcp_tool("mcp__toolreeve_builtin__write_file", {"path": "b.txt", "content": "x"})
        with pytest.raises(ValueError, match="not of the form"):
            await reeve.execute_mcp_tool("mcp__nothing", {})
        with pytest.raises(ValueError, match="no MCP server is called 'elsewhere'"):
            await reeve.execute_mcp_tool("mcp__elsewhere__tool", {})
        chained = await reeve.execute_tool_chain([{"tool_name": "read_file", "params": {"path": "a.txt"}}])
        together = await reeve.execute_batch([{"tool": "read_file", "params": {"path": "a.txt"}}] * 2)

    assert (flat["output"], flat["content"], flat["size"]) == ("hello", "hello", 5)
    assert chained[0]["content"] == together[1]["content"] == "hello"
    assert not (world.workspace / "b.txt").exists()


async def test_tools_are_listed_in_the_format_of_each_provider(world: World) -> None:
    async with world.reeve() as reeve:
        for provider in ("openai", "anthropic", "ollama", "gemini", "mcp"):
            assert "read_file" in str(reeve.tools_for(provider))


def test_the_documented_registry_calls_through_the_road(tmp_path: Path) -> None:
    """In a process of its own: it uses the user's configuration and the current directory."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("hello")
    program = """
import asyncio
from toolreeve import BUILTIN_TOOLS
read = BUILTIN_TOOLS.get("read_file")
result = read["func"]("a.txt")
assert result["success"] and result["data"]["content"] == "hello", result
async def main():
    return await BUILTIN_TOOLS.get("calculate")["func"]("(2 + 3) * 4 ** 2")
assert asyncio.run(main())["data"]["result"] == 80
assert "file" in BUILTIN_TOOLS.get_categories()
assert not read["func"]("/etc/passwd")["success"]
print("done")
"""
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


def test_a_function_registered_with_the_builtin_tools_can_be_called(tmp_path: Path) -> None:
    script = (
        "from toolreeve import BUILTIN_TOOLS as B\n"
        'B.register("mine", lambda x: {"x": x}, "d", "system", {"x": "string"})\n'
        'print(B.get("mine")["func"]("1")["error"]["code"])\n'
        "B.approve = lambda request: True\n"
        'print(B.get("mine")["func"]("1")["data"]["x"])\n'
    )
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert ended.stdout.split() == ["E_PERMISSION", "1"], ended.stderr


async def test_a_refusal_says_what_can_be_done_from_a_program(world: World) -> None:
    async with world.reeve() as reeve:
        with pytest.raises(PermissionError, match=r"nobody can be asked\. Either pass `approve=`") as raised:
            await reeve.execute_mcp_tool("write_file", {"path": "x", "content": "y"})

    assert "terminal" not in str(raised.value)


async def test_a_builtin_server_keeps_the_name_that_the_program_gives_it(world: World) -> None:
    server = {"name": "mine", "transport": {"type": "builtin"}}
    async with world.reeve(mcp_servers=[server]) as reeve:
        flat = await reeve.execute_mcp_tool("mcp__mine__file_exists", {"path": "x"})
        listed = await reeve.discover_mcp_tools("mine")

    assert flat["exists"] is False
    assert len(listed) > 10
