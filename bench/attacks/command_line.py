"""Replay of the exploits through `toolreeve call bash`: none may take effect.

Each command runs as root and as an ordinary user, in default and in plan mode, and nobody can be asked. Afterwards the
workspace and the home directory must be as they were, and a listener that the network guard allows was not contacted.
Programs that are not installed are replaced by one that does all three: it writes there and contacts the listener.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.sandbox.runner import UNPRIVILEGED_UID, drop_root

from bench.attacks.exploits import CODE_OF_THE_WORKSPACE, RUN_OR_WRITE, SENT
from bench.attacks.oracles import snapshot
from bench.attacks.outcome import Tally
from bench.attacks.replay import MODES, build

COMMANDS: Sequence[str] = (*RUN_OR_WRITE, *CODE_OF_THE_WORKSPACE, *SENT)
_SECONDS = 3
_SOURCE = Path(__file__).parents[2] / "src"
_HARM = "#!/bin/sh\ntouch PWN ~/PWN\nexec curl -s -m 1 http://{host}/stub\n"
_HOST = "any.example"
_SETTINGS = """\
[commands]
network = "guarded"
[network]
allow = ["{host}"]
"""


async def run(_: Path | None) -> list[Tally]:
    users = ("root", "user") if os.geteuid() == 0 else ("user",)
    tasks = [asyncio.to_thread(replay, COMMANDS, who, mode) for who in users for mode in MODES]
    return list(await asyncio.gather(*tasks))


def replay(commands: Sequence[str], who: str, mode: str) -> Tally:
    tally = Tally(name=f"command line, {who}, {mode}", payloads=len(commands), attempts=len(commands))
    with _listener() as listener, _world(commands, who, listener) as base:
        control = _call("curl -s -m 2 http://HOST/control", who, "bypass", base, listener)
        if not _contacts(listener):
            tally.escaped.append(f"the control did not reach the listener, so nothing is shown: {control.stderr}")
        before = snapshot(base / "work", base / "home")
        for command in commands:
            ended = _call(_aimed(command), who, mode, base, listener)
            after = snapshot(base / "work", base / "home")
            if changed := sorted(path for path in {*before, *after} if before.get(path) != after.get(path)):
                tally.escaped.append(f"{command!r} changed {changed}")
            if _contacts(listener):
                tally.escaped.append(f"{command!r} contacted the listener")
            if ended.stderr.startswith("Traceback"):
                tally.escaped.append(f"{command!r} did not run, so nothing is shown: {ended.stderr[-300:]}")
            before = after
            refused = "E_PERMISSION" in ended.stderr or "E_DENIED" in ended.stderr
            tally.refused += refused
            tally.harmless += not refused
    return tally


def _aimed(command: str) -> str:
    return command.replace(f"{_HOST}:443", "HOST").replace("https://any.example", "http://HOST").replace(_HOST, "HOST")


def _call(command: str, who: str, mode: str, base: Path, listener: socket.socket) -> "subprocess.CompletedProcess[str]":
    home = base / "home"
    words = ("--mode", mode, "call", "bash", f"command={command.replace('HOST', _address(listener))}")
    return subprocess.run(
        [sys.executable, "-m", "toolreeve", *words, f"timeout={_SECONDS}"],
        cwd=base / "work",
        env={
            "HOME": str(home),
            "PATH": f"{home}/.cargo/bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": str(_SOURCE),
            "XDG_CONFIG_HOME": f"{base}/config",
            "XDG_STATE_HOME": f"{base}/state",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=_dropping_root(who),
    )


@contextmanager
def _listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def _address(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


def _contacts(listener: socket.socket) -> int:
    """How many connections were made since the last call."""
    for count in range(1000):
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
    return 1000


@contextmanager
def _world(commands: Sequence[str], who: str, listener: socket.socket) -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="toolreeve-replay-"))
    try:
        build(base / "work")
        programs = base / "home/.cargo/bin"
        for folder in (programs, base / "config/toolreeve", base / "state"):
            folder.mkdir(parents=True)
        (base / "config/toolreeve/toolreeve.toml").write_text(_SETTINGS.format(host=_address(listener)))
        for name in sorted({command.split()[0] for command in commands}):
            if name.isidentifier() and shutil.which(name, path="/usr/local/bin:/usr/bin:/bin") is None:
                (programs / name).write_text(_HARM.format(host=_address(listener)))
                (programs / name).chmod(0o755)
        base.chmod(0o755)
        if who == "user" and os.geteuid() == 0:
            for path in (base, *base.rglob("*")):
                os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID, follow_symlinks=False)
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _dropping_root(who: str) -> Callable[[], None] | None:
    return drop_root if who == "user" and os.geteuid() == 0 else None
