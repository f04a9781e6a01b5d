"""A small ACP agent that does what a script says, for tests of the client. Standard library only.

The script is a JSON file: the modes to offer, the steps of a turn, and those `after` it. Every line that it reads is
kept in `received`, what its own steps find out in `found`. "$terminal" stands for the terminal that was created last.
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


def call_tools(folder: str, name: str, tool: str, args: dict[str, Any]) -> None:
    """Call a tool of the client over MCP, and say yes to whatever we are asked."""
    version = "2025-11-25"
    client = {
        "protocolVersion": version,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "x", "version": "1"},
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        connection.connect(str(Path(folder) / name))
        stream = connection.makefile("rw")
        for number, method, params in ((1, "initialize", client), (2, "tools/call", {"name": tool, "arguments": args})):
            stream.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            stream.flush()
            while True:
                message = json.loads(stream.readline())
                if message.get("method") == "elicitation/create":
                    found.setdefault("elicited", []).append(message["params"])
                    content = {key: next(iter(each.get("enum", ["yes"]))) for key, each in _asked(message).items()}
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"action": "accept", "content": content}}
                    stream.write(json.dumps(answer) + "\n")
                    stream.flush()
                elif message.get("id") == number:
                    break
        found.setdefault("called", []).append(message)


def _asked(message: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = message["params"].get("requestedSchema", {}).get("properties", {})
    return properties


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


def created() -> str:
    results = [each.get("result", {}) for each in found.get("answers", ())]
    return next((str(each["terminalId"]) for each in reversed(results) if "terminalId" in each), "")


def play(steps: list[dict[str, Any]]) -> None:
    for number, step in enumerate(steps):
        match next(iter(step)):
            case "request":
                send(json.loads(json.dumps({"id": f"a{number}", **step["request"]}).replace("$terminal", created())))
                found.setdefault("answers", []).append(answer_to(f"a{number}"))
            case "until":
                while step["until"] not in str(found["answers"][-1]):
                    send(json.loads(json.dumps({"id": f"a{number}", **step["ask"]}).replace("$terminal", created())))
                    found["answers"].append(answer_to(f"a{number}"))
            case "call":
                call_tools(*SERVERS[0]["args"][-2:], *step["call"])
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
                loads = {"agentCapabilities": {"loadSession": SCRIPT.get("loads", False)}}
                send({"id": message["id"], "result": {"protocolVersion": SCRIPT.get("version", 1), **loads}})
            case "session/load" if SCRIPT.get("forgets"):
                send({"id": message["id"], "error": {"code": -32002, "message": "Resource not found"}})
            case "session/load":
                SERVERS.extend(message["params"]["mcpServers"])
                send(update({"type": "text", "text": "what was said before"}))
                send({"id": message["id"], "result": {"modes": SCRIPT.get("modes")}})
            case "session/new":
                SERVERS.extend(message["params"]["mcpServers"])
                offered = {"modes": SCRIPT.get("modes"), "configOptions": SCRIPT.get("options")}
                send({"id": message["id"], "result": {"sessionId": "s1", **offered}})
            case "session/prompt":
                play(SCRIPT["steps"])
                (HOME / "found.json").write_text(json.dumps(found))
                send(update({"type": "text", "text": "done"}))
                send({"id": message["id"], "result": {"stopReason": "end_turn"}})
                if "after" in SCRIPT:
                    play(SCRIPT["after"])
                    (HOME / "after.json").write_text(json.dumps(found))
            case _ if "id" in message:
                send({"id": message["id"], "result": {}})


main()
