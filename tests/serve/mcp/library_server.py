"""A server that has more than tools: resources, templates, prompts, completions. Its only argument is its name.

Books under `shared://` are also in every other library. Its tool `publish` tells that lists and a book have changed.
"""

import json
import sys
from typing import Any

NAME = sys.argv[1] if len(sys.argv) > 1 else "library"
ERROR = {"code": -32002, "message": "no such book", "data": {"shelf": 7}}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            beyond: dict[str, Any] = {"resources": {"subscribe": True}, "prompts": {}, "completions": {}, "logging": {}}
            info = {"name": NAME, "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, **beyond}, "serverInfo": info}
        case "tools/list":
            hints = {"readOnlyHint": True}
            return {"tools": [{"name": "publish", "inputSchema": {"type": "object"}, "annotations": hints}]}
        case "tools/call":
            for what in ("resources/list_changed", "prompts/list_changed"):
                send(method=f"notifications/{what}")
            for uri in subscribed:
                send(method="notifications/resources/updated", params={"uri": uri})
            return {"content": [{"type": "text", "text": " ".join(sorted(subscribed))}]}
        case "resources/list":
            uris = (f"{NAME}://book/1", "shared://book")
            return {"resources": [{"uri": uri, "name": uri, "annotations": {"audience": ["user"]}} for uri in uris]}
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": f"{NAME}://shelf/{{n}}/book/{{m}}", "name": "shelf"}]}
        case "resources/read":
            if params["uri"].endswith("missing"):
                return None
            return {"contents": [{"uri": params["uri"], "text": f"read by {NAME}", "_meta": {"kept": True}}]}
        case "resources/subscribe":
            subscribed.add(params["uri"])
        case "resources/unsubscribe":
            subscribed.discard(params["uri"])
        case "prompts/list":
            return {"prompts": [{"name": "tell", "arguments": [{"name": "topic"}]}, {"name": "t\u0435ll"}]}
        case "prompts/get":
            said = {"type": "text", "text": f"{NAME} {params['name']} {params.get('arguments')}"}
            return {"messages": [{"role": "user", "content": said}]}
        case "completion/complete":
            return {"completion": {"values": [NAME, json.dumps(params["ref"]), params["argument"]["value"]]}}
    return {}


subscribed: set[str] = set()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        if message["method"] == "server/discover":
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})
        elif (result := answer(message["method"], message.get("params") or {})) is None:
            send(id=message["id"], error=ERROR)
        else:
            send(id=message["id"], result=result)
