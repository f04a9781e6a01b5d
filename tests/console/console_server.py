"""`toolreeve serve` as a user starts it, in a home of its own, and agents that call it."""

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx2

DEADLINE = 90.0
LINK = re.compile(rb"(http://127\.0\.0\.1:\d+)/login\?code=\S+")


class ConsoleServer:
    """`settings` is the user's toolreeve.toml. The port stays the same when it is started again."""

    def __init__(self, place: Path, settings: str = "") -> None:
        self.home = place / "home"
        self.workspace = self.home / "shop"
        self.workspace.mkdir(parents=True)
        folder = self.home / ".config" / "toolreeve"
        folder.mkdir(parents=True)
        (folder / "toolreeve.toml").write_text(settings)
        self._port = "0"

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLREEVE_", "XDG_"))}
        return {**kept, "HOME": str(self.home)}

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "toolreeve", "serve", "--port", self._port],
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        found = self._read_link()
        self.link, self.url = found[0].decode(), found[1].decode()
        self._port = self.url.rpartition(":")[2]
        threading.Thread(target=self._drain, daemon=True).start()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, tool: str, client: str = "Claude Code", **args: Any) -> "Future[dict[str, Any]]":
        """An agent's call, which may wait for a person."""
        return background(self._call, tool, client, args)

    def _call(self, tool: str, client: str, args: dict[str, Any]) -> dict[str, Any]:
        answer = httpx2.post(
            f"{self.url}/api/v1/tools/{tool}/call",
            json={"args": args, "session": "agent"},
            headers={"user-agent": client},
            timeout=DEADLINE,
        )
        found: dict[str, Any] = answer.json()
        return found

    def _read_link(self) -> "re.Match[bytes]":
        stream = self._process.stderr
        assert stream is not None
        said, end = b"", time.monotonic() + DEADLINE
        while time.monotonic() < end:
            ready, _, _ = select.select([stream], [], [], 1)
            piece = os.read(stream.fileno(), 65536) if ready else b""
            said += piece
            if (found := LINK.search(said)) and b"\n" in said[found.end() :]:
                return found
            if ready and not piece:
                break
        raise AssertionError(f"it did not print a link: {said.decode()}")

    def _drain(self) -> None:
        stream = self._process.stderr
        while stream is not None and stream.read(65536):
            pass


def background(function: Any, *args: Any) -> "Future[Any]":
    """Run in a thread of its own; the result is waited for with a deadline."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function(*args))
        except BaseException as problem:
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future
