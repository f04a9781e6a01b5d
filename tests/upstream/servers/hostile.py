"""A server that misbehaves in the way its first argument says. Uses nothing but the standard library, to start fast."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def say(message: object) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def answer(number: Any, result: object) -> None:
    say({"jsonrpc": "2.0", "id": number, "result": result})


def greet() -> None:
    """The handshake, as it should be."""
    asked = json.loads(sys.stdin.readline())
    answer(asked["id"], {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "hostile"}})
    sys.stdin.readline()


def request() -> Any:
    return json.loads(sys.stdin.readline())["id"]


def garbage() -> None:
    print("Server is starting…", flush=True)
    greet()
    number = request()
    os.write(1, b"\xff\xfe not json\n[1, \n{\n\n" + b"[" * 5000 + b"\n" + b'"text"\n7\nnull\n[7, null]\n')
    answer(number, {"fine": True})


def batch() -> None:
    greet()
    first, second = request(), request()
    say([{"jsonrpc": "2.0", "id": second, "result": {"of": 2}}, {"jsonrpc": "2.0", "id": first, "result": {"of": 1}}])


def giant_line() -> None:
    greet()
    request()
    while True:
        os.write(1, b"x" * (1 << 20))


def half_a_line() -> None:
    greet()
    number = request()
    os.write(1, json.dumps({"jsonrpc": "2.0", "id": number, "result": {}})[:-5].encode())
    os._exit(3)


def answer_and_die() -> None:
    greet()
    answer(request(), {"fine": True})
    os._exit(0)


def closed_output() -> None:
    greet()
    request()
    os.close(1)
    time.sleep(60)


def silent() -> None:
    time.sleep(60)


def deaf() -> None:
    greet()
    time.sleep(60)


def twice() -> None:
    greet()
    number = request()
    for text in ("first", "second"):
        answer(number, {"answer": text})
    answer(request(), {"answer": "third"})


def notifications() -> None:
    greet()
    number = request()
    flood = b"".join(
        json.dumps(
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": n}}
        ).encode()
        + b"\n"
        for n in range(1000)
    )
    for _ in range(50):
        os.write(1, flood)
    answer(number, {"fine": True})


def errors() -> None:
    greet()
    number = request()
    for _ in range(200):
        os.write(2, b"\x1b[31mwarning\x1b[0m " * 4000)
    os.write(2, "the last of it \u202e\n".encode())
    answer(number, {"fine": True})
    os._exit(7)


def large() -> None:
    greet()
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if "id" in asked:
            answer(asked["id"], asked["params"])


def environment() -> None:
    greet()
    answer(request(), dict(os.environ) | {"cwd": str(Path.cwd())})
    sys.stdin.read()


def descriptors() -> None:
    greet()
    found = {}
    for number in range(1024):
        with contextlib.suppress(OSError):
            found[str(number)] = str(Path(f"/proc/self/fd/{number}").readlink())
    answer(request(), found)
    sys.stdin.read()


def stubborn() -> None:
    """Neither a closed input nor a request to end impresses it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    greet()
    answer(request(), {"pids": [os.getpid()]})
    while True:
        time.sleep(60)


def family() -> None:
    """Children of all kinds that would like to stay: in its group, in sessions of their own, and forked twice."""
    greet()
    told, telling = os.pipe()
    for way in ("plain", "session", "daemon"):
        if os.fork() == 0:
            _settle(way, telling)
    pids = [int(os.read(told, 8)) for _ in range(3)]
    answer(request(), {"pids": [os.getpid(), *pids]})
    if sys.argv[2:] == ["crash"]:
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGSEGV)
    sys.stdin.read()


def _settle(way: str, telling: int) -> None:
    if way != "plain":
        os.setsid()
    if way == "daemon" and os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(telling, f"{os.getpid():8d}".encode())
    while True:
        time.sleep(60)


def parricide() -> None:
    """It kills whoever started it."""
    greet()
    answer(request(), {"pids": [os.getpid()]})
    sys.stdin.readline()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
