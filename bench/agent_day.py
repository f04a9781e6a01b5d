"""A day of a scripted agent: its commands over MCP, its questions counted, everything undone.

python -m bench.agent_day [--mode MODE] [--protocol legacy|2026-07-28] [--questions]

Exits with 1 if the tree is not the same, byte for byte, after `toolreeve undo --session`.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters

from bench.measure import Row

MODERN = "2026-07-28"
COMMANDS = Path(__file__).with_name("agent_day.txt")
FILES = {
    "README.md": "# Shop\n\nA cart and its prices.\n",
    ".gitignore": "build/\n__pycache__/\n",
    "shop/__init__.py": "",
    "shop/prices.py": "PRICES = {'apple': 0.5, 'pear': 0.7}\n",
    "shop/cart.py": (
        "from shop.prices import PRICES\n\n\nclass Cart:\n    def __init__(self):\n        self.items = {}\n\n"
        "    def add(self, name, count=1):\n        self.items[name] = self.items.get(name, 0) + count\n\n"
        "    def total(self):\n        return sum(PRICES[name] * count for name, count in self.items.items())\n"
    ),
    "tests/__init__.py": "",
    "tests/test_cart.py": (
        "import unittest\n\nfrom shop.cart import Cart\n\n\nclass CartTest(unittest.TestCase):\n"
        "    def test_an_empty_cart_costs_nothing(self):\n        self.assertEqual(Cart().total(), 0)\n"
    ),
    "scripts/report.sh": "#!/bin/sh\nls shop\n",
    "scripts/build.py": "import os\nos.makedirs('build', exist_ok=True)\nopen('build/out', 'w').write('built\\n')\n",
}


@dataclass(slots=True)
class Day:
    """What happened."""

    commands: int = 0
    questions: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    undone: str = ""
    different: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the day of a scripted agent.")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--protocol", default="legacy")
    parser.add_argument("--questions", action="store_true", help="print every question")
    options = parser.parse_args(arguments)
    day = asyncio.run(live(options.mode, options.protocol))
    _report(day, every_question=options.questions)
    return 1 if day.different else 0


async def days() -> list[Row]:
    """For `bench.run`: each question is answered with "once"."""
    rows: list[Row] = []
    for mode, protocol, most in (("default", "legacy", None), ("accept_edits", "legacy", 6), ("default", MODERN, None)):
        day = await live(mode, protocol)
        share = 100 * len(day.questions) / day.commands
        target = "" if most is None else f"≤ {most}"
        met = None if most is None else share <= most
        rows.append(
            Row(name=f"questions per 100 commands, {mode}, {protocol}", value=f"{share:.1f}", target=target, met=met)
        )
        same = "the same" if not day.different else f"{len(day.different)} paths differ"
        rows.append(
            Row(name="tree after undo --session", value=same, target="the same", met=not day.different),
        )
    return rows


async def live(mode: str, protocol: str) -> Day:
    """A whole day in a repository of its own, undone at the end."""
    with tempfile.TemporaryDirectory() as place:
        workspace = _make_repository(Path(place))
        before = snapshot(workspace)
        day = await _work(Path(place), workspace, mode, protocol)
        day.undone = await asyncio.to_thread(_undo, Path(place), workspace)
        after = snapshot(workspace)
        day.different = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return day


def commands() -> Iterator[str]:
    """The commands of the file; a here-document goes on to its end."""
    lines = iter(COMMANDS.read_text().splitlines())
    for line in lines:
        command = line
        if "<<'PY'" in line:
            for more in lines:
                command += f"\n{more}"
                if more == "PY":
                    break
        yield command


def snapshot(top: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of everything."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(top.rglob("*")):
        content = b""
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(top))] = (path.lstat().st_mode, content)
    return found


def _environment(place: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(place / "home"), "XDG_STATE_HOME": str(place / "state")}


def _make_repository(place: Path) -> Path:
    workspace = place / "work"
    (place / "home").mkdir()
    for name, text in FILES.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    identity = ("-c", "user.name=day", "-c", "user.email=day@example.com")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "Start")):
        subprocess.run(["git", *words], cwd=workspace, check=True)
    return workspace


async def _work(place: Path, workspace: Path, mode: str, protocol: str) -> Day:
    day = Day()

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001
        day.questions.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow once"})

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolreeve", "--mode", mode, "mcp"],
        env=_environment(place),
        cwd=workspace,
    )
    async with Client(server, mode=protocol, read_timeout_seconds=120, elicitation_callback=answer) as client:
        for command in commands():
            day.commands += 1
            result = await client.call_tool("bash", {"command": command})
            if result.is_error:
                day.failed[command] = str((result.structured_content or {}).get("error", {}).get("message"))
    return day


def _toolreeve(place: Path, workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "toolreeve", *words]
    return subprocess.run(program, cwd=workspace, env=_environment(place), capture_output=True, text=True)


def _undo(place: Path, workspace: Path) -> str:
    exported = _toolreeve(place, workspace, "audit", "export").stdout.splitlines()
    session = next(record["session"] for record in map(json.loads, exported) if record.get("tool") == "bash")
    ended = _toolreeve(place, workspace, "undo", "--session", session)
    return ended.stderr if ended.returncode else f"undone: {len(ended.stdout.splitlines())} paths"


def _report(day: Day, *, every_question: bool) -> None:
    print(f"commands {day.commands}, questions {len(day.questions)}, failed {len(day.failed)}")
    for question in day.questions if every_question else ():
        print(f"--- asked\n{question}")
    for command, message in day.failed.items():
        print(f"failed: {command.splitlines()[0]}: {message}")
    print(day.undone.strip())
    print(f"different afterwards: {day.different}" if day.different else "the tree is the same, byte for byte")


if __name__ == "__main__":
    raise SystemExit(main())
