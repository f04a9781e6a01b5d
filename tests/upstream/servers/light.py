"""A server without the SDK, so that many start fast. What it offers is read from the JSON of its only argument.

{"tools": [...], "answers": {tool or method: result}, "page": n, "capabilities": {...}}; "modern" knows only that era,
"noisy" says with each answer that its list has changed; `{"file": path}` reads all that from a file at each start.
Tools of its own: `echo`, `pid`, `die`, `sleep`, `relist` (reads the file again and says so), `ask` (asks the caller
`method`, `times` times), `heard` (the notifications and other requests that came).
"""

import json
import os
import signal
import sys
import time
from typing import Any

OWN = ("echo", "pid", "die", "sleep", "relist", "environment", "ask", "heard")


def read() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    if "file" in told:
        with open(told["file"]) as stream:
            told |= json.load(stream)
    return told


def definition(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def listed(told: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    tools = told.get("tools", [definition(name) for name in OWN])
    size, start = told.get("page", len(tools) or 1), int(params.get("cursor", 0))
    if told.get("circle"):
        return {"tools": tools, "nextCursor": "0"}
    page: dict[str, Any] = {"tools": tools[start : start + size]}
    return page if start + size >= len(tools) else page | {"nextCursor": str(start + size)}


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def ask(told: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    args = params.get("arguments") or {}
    question = {"method": args.get("method", "elicitation/create"), "params": {"message": "Which?"}}
    if not told.get("modern"):
        return text(json.dumps([answer(question) for _ in range(args.get("times", 1))]))
    answers = [*json.loads(params.get("requestState", "[]")), *params.get("inputResponses", {}).values()]
    if len(answers) < args.get("times", 1):
        return {
            "resultType": "input_required",
            "inputRequests": {"q": question},
            "requestState": json.dumps(answers),
        }
    return text(json.dumps(answers))


def answer(question: dict[str, Any]) -> Any:
    """What the caller says to a question that is asked in the middle of a call."""
    send({"id": "q", **question})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q":
            return message.get("result", message.get("error"))
        heard.append(message.get("method"))
    sys.exit()


heard: list[Any] = []


def call(told: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    name, args = params["name"], params.get("arguments") or {}
    if name in told.get("answers", {}):
        answer: dict[str, Any] = told["answers"][name]
        return answer
    match name:
        case "ask":
            return ask(told, params)
        case "heard":
            return text(json.dumps(heard))
        case "pid":
            return text(str(os.getpid()))
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleep":
            time.sleep(args.get("seconds", 1))
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "relist":
            told |= read()
            send({"method": "notifications/tools/list_changed"})
    return text(json.dumps(args)) | {"structuredContent": args}


def main() -> None:
    told = read()
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        heard.append([method, params] if params and method != "tools/call" else method)
        if "id" not in message:
            continue
        if told.get("noisy"):
            for _ in range(20):
                send({"method": "notifications/tools/list_changed"})
        if method == "server/discover" and told.get("modern"):
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
        elif method == "initialize" and not told.get("modern"):
            info = {"name": "light", "version": "1"}
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": told.get("capabilities", {"tools": {"listChanged": True}}),
                "serverInfo": info,
            }
        elif method == "tools/list":
            result = listed(told, params)
        elif method == "tools/call" and params["name"] != "unknown":
            result = call(told, params)
        elif method in told.get("answers", {}):
            result = told["answers"][method]
        else:
            send({"id": message["id"], "error": {"code": -32601, "message": f"no {method}", "data": {"kept": [1]}}})
            continue
        send({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
