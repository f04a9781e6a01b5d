"""What `toolreeve mcp` prints on stderr."""

import os
import select
import time
from pathlib import Path

import pytest

from tests.serve.mcp.stdio_client import PATIENCE, TOOLREEVE, Child, home

TOOLS = "tools:\n  hail:\n    description: Say hello\n    script: echo hello\n"


def served(place: Path, *options: str) -> Child:
    (place / "work").mkdir()
    env = home(place, TOOLREEVE_TOOLS=str(place / "tools.yaml"))
    return Child([*TOOLREEVE, "mcp", *options], cwd=place / "work", env=env)


def hear(child: Child, text: str) -> str:
    """All that it says on stderr until a text is among it."""
    assert child.process.stderr is not None
    said, end = "", time.monotonic() + PATIENCE
    while text not in said:
        assert select.select([child.process.stderr], [], [], max(0.0, end - time.monotonic()))[0], said
        said += os.read(child.process.stderr.fileno(), 1 << 16).decode()
    return said


def test_a_tool_file_that_becomes_invalid_is_reported_once_and_its_tools_stay(tmp_path: Path) -> None:
    file = tmp_path / "tools.yaml"
    file.write_text(TOOLS)
    with served(tmp_path) as server:
        server.initialize()
        before = {each["name"] for each in server.ask("tools/list")["result"]["tools"]}
        file.write_text("tools:\n  hail: [\n")
        said = hear(server, "its previous tools stay")
        after = {each["name"] for each in server.ask("tools/list")["result"]["tools"]}
        file.write_text("tools: 3\n")
        said += hear(server, "its previous tools stay")
        _, rest = server.leave()

    assert "hail" in before
    assert before == after
    assert str(file) in said
    assert (said + rest).count("its previous tools stay") == 2, "once for each change"


@pytest.mark.parametrize("words", [",", "", " , "])
def test_a_toolset_of_separators_is_refused_and_does_not_show_everything(tmp_path: Path, words: str) -> None:
    (tmp_path / "tools.yaml").write_text(TOOLS)
    with served(tmp_path, "--tools", words) as server:
        answer = server.ask("tools/list", {"_meta": {}})
        status, said = server.leave()

    assert "result" not in answer
    assert status == 2
    assert "names no tools" in said
