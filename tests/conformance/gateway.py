"""A gateway as a user starts it: `toolreeve serve --mcp` in front of one server, whose tools keep their names."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIXTURE = Path(__file__).with_name("fixture.py")
DEADLINE = 60.0


@contextmanager
def running(command: Sequence[str | Path], place: Path, *, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """A process that says on stderr where it can be reached; gives that URL, and ends it with SIGTERM."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=place,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield _read_url(process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _read_url(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    said, end = b"", time.monotonic() + DEADLINE
    while time.monotonic() < end:
        ready, _, _ = select.select([process.stderr], [], [], 1)
        piece = os.read(process.stderr.fileno(), 65536) if ready else b""
        said += piece
        if found := re.search(rb"http://127\.0\.0\.1:\d+(/mcp)?\b", said):
            return found[0].decode()
        if ready and not piece:
            break
    raise AssertionError(f"it did not say where it listens: {said.decode()}")


@contextmanager
def gateway(server: Mapping[str, Any], place: Path, *flags: str) -> Iterator[str]:
    """The URL of a gateway to one server, in a home of its own. Its tools are allowed, and no others are shown."""
    home, work = place / "home", place / "work"
    folder = home / ".config" / "toolreeve"
    folder.mkdir(parents=True)
    work.mkdir()
    (folder / "toolreeve.toml").write_text(_settings(server))
    command = [sys.executable, "-m", "toolreeve", "serve", "--mcp", "--port", "0", *flags]
    kept = {"HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}
    with running(command, work, env=kept) as url:
        yield url


def _settings(server: Mapping[str, Any]) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**server, "prefix": ""}.items()]
    allowed = '[policy]\nallowed_tools = ["*"]\n[mcp]\ntools = ["upstream"]\nlist_wait = 60.0\n'
    return allowed + "\n".join(["[mcp_servers.upstream]", *lines, ""])
