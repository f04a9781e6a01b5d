"""A small ACP agent that does what a script says, for tests of the client. Standard library only.

The script is a JSON file: the modes to offer, and the steps of a turn. Every line that it reads is kept in `received`,
what its own steps find out in `found`.
"""

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

HOME = Path(os.environ["HOME"])
SCRIPT = json.loads((HOME / "script.json").read_text())
found: dict[str, Any] = {}
waiting: list[dict[str, Any]] = []
SERVERS: list[dict[str, Any]] = []


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with (HOME / "received").open("a") as kept:
        kept.write(line)
    message: dict[str, Any] = json.loads(line)
    return message


def answer_to(number: Any) -> dict[str, Any]:
    while True:
        message = read()
        if message.get("id") == number and "method" not in message:
            return message
        waiting.append(message)


def ask_tools(folder: str, name: str) -> Any:
    """What the server of the client's tools answers to `ping`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        connection.connect(str(Path(folder) / name))
        connection.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        return json.loads(connection.recv(4096))


def attempt(name: str, step: dict[str, Any]) -> None:
    try:
        if name == "write":
            Path(step["write"]).write_text("written by the agent itself")
        elif name == "sockets":
            found.setdefault("listed", []).extend(str(each) for each in Path(step["sockets"]).rglob("*.sock"))
        elif name == "replace":
            folder, socket_name = SERVERS[0]["args"][-2:]
            (Path(folder) / socket_name).unlink()
        elif name == "tools":
            found["said"] = ask_tools(*SERVERS[0]["args"][-2:])
        else:
            with socket.create_connection(tuple(step["connect"]), timeout=5) as connection:
                connection.sendall(b"CONNECT other:80 HTTP/1.1\r\n\r\n")
                found["said"] = connection.recv(300).decode(errors="replace")
        found[name] = "worked"
    except OSError as problem:
        found[name] = type(problem).__name__


def play(steps: list[dict[str, Any]]) -> None:
    for number, step in enumerate(steps):
        match next(iter(step)):
            case "request":
                send({"id": f"a{number}", **step["request"]})
                found.setdefault("answers", []).append(answer_to(f"a{number}"))
            case "send":
                send(step["send"])
            case "await":
                found.setdefault("answers", []).append(answer_to(step["await"]))
            case "flood":
                for _ in range(step["flood"]):
                    send(update({"type": "text", "text": "x" * 100_000}))
            case "stderr":
                sys.stderr.write(step["stderr"] * step.get("times", 1))
                sys.stderr.flush()
            case "exit":
                os._exit(step["exit"])
            case "hang":
                while True:
                    read()
            case name:
                attempt(name, step)


def update(content: dict[str, Any]) -> dict[str, Any]:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": content}
    return {"method": "session/update", "params": {"sessionId": "s1", "update": chunk}}


def main() -> None:
    while True:
        message = waiting.pop(0) if waiting else read()
        match message.get("method"):
            case "initialize":
                send({"id": message["id"], "result": {"protocolVersion": SCRIPT.get("version", 1)}})
            case "session/new":
                SERVERS.extend(message["params"]["mcpServers"])
                offered = {"modes": SCRIPT.get("modes"), "configOptions": SCRIPT.get("options")}
                send({"id": message["id"], "result": {"sessionId": "s1", **offered}})
            case "session/prompt":
                play(SCRIPT["steps"])
                (HOME / "found.json").write_text(json.dumps(found))
                send(update({"type": "text", "text": "done"}))
                send({"id": message["id"], "result": {"stopReason": "end_turn"}})
            case _ if "id" in message:
                send({"id": message["id"], "result": {}})


main()
