"""Runs a page from top to bottom in its own workspace, and reports where it is wrong.

Every block is run, parsed or checked according to its language. Only `text` is not.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from tests.docs.blocks import Block, read_blocks
from tests.docs.interpreter import Interpreter
from tests.docs.output_match import matches, visible_lines
from tests.docs.terminal import Terminal, read_commands
from tests.record.postgres.server import PostgresServer
from toolreeve.approval.auto_approval import read_policies
from toolreeve.approval.governor_files import read_governors
from toolreeve.cli.policy_cases import read_cases
from toolreeve.config import load
from toolreeve.config.mcp_servers.dialects import plain
from toolreeve.config.mcp_servers.reader import entries, sections
from toolreeve.config.servers import read_servers
from toolreeve.policy.files import read_rules
from toolreeve.scripted.definition import read_definitions

ROOT = Path(__file__).parents[2]
PORT = ":8733"
"""Where pages say that `toolreeve serve` listens. Each run uses its own port instead."""
POSTGRES = "postgresql://toolreeve@127.0.0.1/toolreeve"
"""The database of pages. Each run has its own server instead."""
NATS_PORT = "4222"
"""Likewise for nats-server."""
_SHOWN = re.compile(r"# → ?(.*)$", re.MULTILINE)


class PageProblem(AssertionError):
    """A page shows something else than what happens."""


def environment(home: Path) -> dict[str, str]:
    """A user with nothing configured, and this installation first in the path."""
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"HOME": str(home), "PATH": path, "NO_COLOR": "1", "TERM": "xterm"}
    return {"LANG": "C.UTF-8"} | kept | own


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return str(taken.getsockname()[1])


def _missing_programs(document: Any, path: str) -> list[str]:
    """Programs that the servers of a client's file need and that are not installed."""
    found = (entry.raw for where, section in sections(document) for entry in entries(section, where))
    commands = [str(plain(raw, own=False).entry.get("command", "toolreeve")) for raw in found]
    return [command for command in commands if shutil.which(command, path=path) is None]


def shown_in(source: str) -> list[str]:
    """The output that Python code announces in comments that begin with `# →`."""
    return _SHOWN.findall(source)


class Page:
    def __init__(self, path: Path, scratch: Path) -> None:
        self.path = path
        self.home = scratch / "home"
        self.workspace = scratch / "project"
        self.home.mkdir()
        self.workspace.mkdir()
        self._port = _free_port()
        self._nats_port = _free_port()
        self._postgres: PostgresServer | None = None
        self.environ = environment(self.home) | {"TOOLREEVE_SERVE_PORT": self._port}
        self._terminal: Terminal | None = None
        self._interpreter: Interpreter | None = None

    def run(self) -> None:
        """Continue after a problem, as a reader would, and report all of them."""
        problems: list[str] = []
        for block in read_blocks(self.path):
            try:
                self._run(block)
            except PageProblem as problem:
                problems.append(str(problem))
        if problems:
            raise PageProblem("\n\n".join(problems))

    def _run(self, block: Block) -> None:
        if POSTGRES in block.text and self._postgres is None:
            self._postgres = PostgresServer()
        url = POSTGRES if self._postgres is None else self._postgres.url()
        text = block.text.replace(POSTGRES, url).replace(PORT, f":{self._port}").replace(NATS_PORT, self._nats_port)
        block = replace(block, text=text)
        if block.file is not None:
            self._write(block)
        elif block.language in RUNS:
            RUNS[block.language](self, block)
        else:
            raise self._problem(block, f"nothing runs a block of {block.language!r}")

    def _problem(self, block: Block, text: str) -> PageProblem:
        name = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path.name
        return PageProblem(f"{name}:{block.line}: {text}")

    def run_commands(self, block: Block) -> None:
        if self._terminal is None:
            self._terminal = Terminal(self.workspace, self.environ)
        commands = read_commands(block.text)
        for number, command in enumerate(commands):
            output, status = self._terminal.run(command)
            if not matches(visible_lines("\n".join(command.printed)), visible_lines(output)):
                raise self._problem(block, f"$ {command.text}\nprinted, with status {status}:\n{output}")
            following = commands[number + 1].text if number + 1 < len(commands) else ""
            if status and following != "echo $?":
                raise self._problem(block, f"$ {command.text}\nfailed with {status}, which the page does not show")

    def run_python(self, block: Block) -> None:
        if self._interpreter is None:
            self._interpreter = Interpreter(self.workspace, self.environ)
        output, problem = self._interpreter.run(block, str(self.path))
        if problem:
            raise self._problem(block, problem)
        if not matches(visible_lines("\n".join(shown_in(block.text))), visible_lines(output)):
            raise self._problem(block, f"printed:\n{output}")

    def parse_json(self, block: Block) -> None:
        if missing := _missing_programs(json.loads(block.text), self.environ["PATH"]):
            raise self._problem(block, f"no program called {', '.join(missing)}")

    def _write(self, block: Block) -> None:
        """Write a file of the page, below the home for `~`, and check it."""
        name = str(block.file)
        path = self.home / name[2:] if name.startswith("~/") else self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        check = next((check for end, check in CHECKS.items() if path.name.endswith(end)), None)
        if check is None:
            raise self._problem(block, f"nothing checks a file called {path.name!r}")
        check(self, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal is not None:
            self._terminal.close()
        if self._interpreter is not None:
            self._interpreter.close()
        _end_left(self.home)
        if self._postgres is not None:
            self._postgres.close()


def _end_left(home: Path) -> None:
    """End what a page started in the background, such as the process that answers hooks: it would write to a home that
    is being removed."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == str(home):
                process.kill()
                left.append(process)
    psutil.wait_procs(left, timeout=10)


def _check_settings(page: Page, _: Path) -> None:
    for problem in load(environ=page.environ, cwd=page.workspace).mcp_problems:
        raise problem


def _check_toml(_: Page, path: Path) -> None:
    tomllib.loads(path.read_text())


def _check_client(_: Page, path: Path) -> None:
    """A configuration file of an MCP client, with or without comments."""
    read_servers(path)


def _check_policy(page: Page, path: Path) -> None:
    read_rules(path, root=str(page.workspace), tighten_only=path.parent == page.workspace)


def _check_auto_approval(_: Page, path: Path) -> None:
    assert read_policies(path)


def _check_governors(_: Page, path: Path) -> None:
    assert read_governors(path).permission


def _check_cases(_: Page, path: Path) -> None:
    read_cases(path)


def _check_tools(page: Page, path: Path) -> None:
    """A page may show an invalid file and its error, in a directory called `wrong` or `refused`."""
    if path.parent.name not in ("wrong", "refused"):
        read_definitions(path)


def _check_python(page: Page, path: Path) -> None:
    subprocess.run([sys.executable, path], check=True, cwd=page.workspace, env=page.environ, timeout=60)


def _accept(_: Page, __: Path) -> None:
    """Plain text needs no check."""


def _skip(_: Page, __: Block) -> None:
    """Text is only shown."""


RUNS: Mapping[str, Callable[[Page, Block], None]] = {
    "console": Page.run_commands,
    "python": Page.run_python,
    "json": Page.parse_json,
    "text": _skip,
}
CHECKS: Mapping[str, Callable[[Page, Path], Any]] = {
    "toolreeve.toml": _check_settings,
    ".toml": _check_toml,
    ".json": _check_client,
    "auto_approval_policies.yaml": _check_auto_approval,
    "governors.yaml": _check_governors,
    "policy.yaml": _check_policy,
    "cases.yaml": _check_cases,
    "tools.yaml": _check_tools,
    ".py": _check_python,
    ".txt": _accept,
    ".md": _accept,
}
