"""`toolreeve hook CLIENT`: answers one event of an agent client.

Standard library only until it must decide itself: a running server answers within milliseconds. Whatever goes wrong
here, the call is refused in the client's own format; silence would let it through.
"""

import gc
import json
import os
import signal
import sys
from posixpath import isdir, realpath

from toolreeve.hook.events import (
    BLOCK,
    CLIENTS,
    HEADLESS,
    MAX_EVENT,
    WORKSPACE_VARIABLES,
    MalformedEvent,
    answer,
    is_prompt,
    parse_event,
)
from toolreeve.hook.headless import is_headless
from toolreeve.hook.private_socket import connect, socket_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SERVER_TIMEOUT = 5.0
DEADLINE = 25
"""Seconds; below the limit that `hooks install` sets, at which clients let the call through."""
USAGE = f"usage: toolreeve hook {{{'|'.join(CLIENTS)}}}, with the event on standard input"


def main(args: list[str]) -> int:
    """Returns the exit status: 0 with an answer on stdout, or 2 with the reason on stderr."""
    if args in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if len(args) == 2 and args[0] == "resident":
        from toolreeve.hook.one_shot import run_resident

        run_resident(args[1])
        return 0
    if len(args) != 1 or args[0] not in CLIENTS:
        return _refuse(USAGE)
    signal.signal(signal.SIGALRM, _time_out)
    signal.alarm(DEADLINE)
    try:
        return _answer(args[0], sys.stdin.buffer.read(MAX_EVENT + 1))
    except MalformedEvent as problem:
        return _refuse(f"refused: {problem}")
    except Exception as problem:
        return _refuse(f"refused, because the policy could not be asked: {type(problem).__name__}: {problem}")


def _answer(client: str, raw: bytes) -> int:
    event = parse_event(client, raw)
    workspace = find_workspace(client, event, os.environ)
    headless = is_headless(client)
    named = f"{client} {HEADLESS}" if headless else client
    decision, reason = _ask_server(named, workspace, raw) or _decide(client, workspace, raw, headless=headless)
    if is_prompt(client, event):
        return 0
    text = answer(client, str(event["hook_event_name"]), decision, f"toolreeve: {reason}")
    sys.stdout.write(text)
    sys.stdout.flush()
    return 0


def find_workspace(client: str, event: dict[str, object], environ: "Mapping[str, str]") -> str:
    """The folder that the client was started in, where it says so; else the directory of the call."""
    named = environ.get(WORKSPACE_VARIABLES.get(client, ""), "")
    folder = named or str(event.get("cwd") or "") or "."
    if not isdir(folder):
        raise MalformedEvent(f"the workspace {folder[:200]!r} is not a directory")
    return realpath(folder)


def _ask_server(named: str, workspace: str, raw: bytes) -> tuple[str, str] | None:
    """None if no server answers: a stale socket, a foreign one, or a server that is shutting down."""
    try:
        with connect(socket_path(workspace, os.environ), SERVER_TIMEOUT) as server:
            server.sendall(named.encode() + b"\n" + raw)
            server.shutdown(1)
            answered = b"".join(iter(lambda: server.recv(65536), b""))
        found = json.loads(answered)
        return str(found["decision"]), str(found["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _decide(client: str, workspace: str, raw: bytes, *, headless: bool) -> tuple[str, str]:
    from toolreeve.hook.fast_start import prepare

    gc.disable()  # next to nothing of what is imported is garbage
    code = prepare()
    from toolreeve.hook.one_shot import decide_alone

    try:
        return decide_alone(client, workspace, raw, headless=headless)
    finally:
        code.save()


def _refuse(reason: str) -> int:
    print(f"toolreeve hook: {reason}", file=sys.stderr)
    return BLOCK


def _time_out(*_: object) -> None:
    """Leaves at once, whatever is running."""
    os.write(2, f"toolreeve hook: refused: no decision within {DEADLINE} seconds\n".encode())
    os._exit(BLOCK)
