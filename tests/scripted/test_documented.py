"""Every documented tool is run, by root and by an ordinary user: it works, or says what it lacks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import WHO

DOCUMENTED = Path(__file__).with_name("documented.yaml")
URL = "http://127.0.0.1:9/"
NO_NETWORK = "sandbox.network"
PYTHON = shutil.which("python", path="/usr/local/bin:/usr/bin:/bin")

# Each call, and what its text must contain.
CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "web_request": ({"method": "GET", "url": URL}, NO_NETWORK),
    "template_request": ({"url": URL, "auth_token": "t"}, NO_NETWORK),
    "functions.acp_fs__read_text_file": ({"path": "a.txt"}, "some text"),
    "plain_read": ({"path": "a.txt"}, "some text"),
    "data_processor": ({"input_file": "a.txt"}, "worked through a.txt" if PYTHON else "python: command not found"),
    "quick_task": ({"message": "hi there"}, "hi there"),
    "short_request": ({"method": "GET", "url": URL}, NO_NETWORK),
    "heavy_request": ({"method": "GET", "url": URL}, NO_NETWORK),
    "database_query": ({"host": "127.0.0.1", "database": "d", "user": "u", "query": "select 1"}, "psql"),
    "file_processor": ({"directory": ".", "pattern": "*.txt", "search": "some", "limit": 5}, "a.txt"),
    "dangerous_operation": ({}, "dangerous_command: command not found"),
    "unreliable_tool": ({}, "sometimes_fails: command not found"),
    "flaky_api": ({"url": URL}, NO_NETWORK),
    "cached_api": ({"url": URL}, NO_NETWORK),
}
PROGRAM = """
import asyncio, json, os, sys
from tests.sandbox.runner import drop_root
from toolreeve import Toolreeve

if sys.argv[2] == "user" and os.geteuid() == 0:
    drop_root()

async def main():
    async with Toolreeve(mode="bypass", tool_files=[sys.argv[1]]) as reeve:
        said = {}
        for name, args in json.load(sys.stdin).items():
            said[name] = (await reeve.call(name, args)).to_text()
        assert not reeve.problems, reeve.problems
        print(json.dumps(said))

asyncio.run(main())
"""


@pytest.fixture(scope="module", params=WHO)
def said(request: pytest.FixtureRequest) -> dict[str, str]:
    """What each tool says to this user."""
    place = open_folder()
    (place / "a.txt").write_text("some text\n")
    (place / "process_data.py").write_text("import sys; print('worked through', sys.argv[1])\n")
    (place / "home").mkdir()
    tools = place / "tools.yaml"
    tools.write_bytes(DOCUMENTED.read_bytes())
    for path in (place, *place.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tools), request.param],
        input=json.dumps({name: args for name, (args, _) in CALLS.items()}),
        cwd=place,
        env={"HOME": str(place / "home"), "PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, str] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_documented_tool_works_or_says_what_it_lacks(said: dict[str, str], name: str) -> None:
    assert CALLS[name][1] in said[name]


def test_every_documented_tool_is_run() -> None:
    names = [
        line.strip().rstrip(":") for line in DOCUMENTED.read_text().splitlines() if line[:2] == "  " and line[2] != " "
    ]

    assert sorted(names) == sorted(CALLS)
