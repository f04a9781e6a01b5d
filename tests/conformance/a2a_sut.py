"""A server for the A2A TCK: its messages name behaviours by their ids; each becomes a tool call here.

Run as `python -m tests.conformance.a2a_sut PORT`, then the TCK's `run_tck.py --sut-host http://127.0.0.1:PORT`.
"""

import asyncio
import json
import shlex
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from a2a.types import Message

from tests.world import World
from toolreeve import DangerLevel, Toolreeve, tool
from toolreeve.config.sections.a2a import A2a
from toolreeve.config.sections.network import Network
from toolreeve.config.sections.serve import Serve
from toolreeve.core.result import Output
from toolreeve.serve.a2a import grpc_server, handler
from toolreeve.serve.a2a.messages import RequestedCall, asks_for_help, read_calls
from toolreeve.serve.access import new_access_control
from toolreeve.serve.app import HttpServer, bind
from toolreeve.serve.doors import new_application
from toolreeve.serve.limits import read_limits
from toolreeve.serve.mcp.door import new_view
from toolreeve.serve.mcp.http import ToolViews
from toolreeve.serve.tokens import Tokens

FILE = {"type": "image", "data": "VENL", "mimeType": "text/plain", "name": "output.txt"}
LINK = {
    "type": "resource_link",
    "uri": "https://example.com/output.txt",
    "name": "output.txt",
    "mimeType": "text/plain",
}


@tool(danger=DangerLevel.SAFE)
async def say(text: str, seconds: float = 0.0) -> str:
    """Say a text after some seconds."""
    await asyncio.sleep(seconds)
    return text


@tool(danger=DangerLevel.SAFE)
def give(what: str) -> Output:
    """Give data or a file."""
    if what == "link":
        return Output(data={"given": what}, raw={"content": [LINK]})
    if what == "file":
        return Output(data={"given": what}, images=(FILE,))
    return Output(data={"key": "value", "count": 42})


@tool(danger=DangerLevel.CRITICAL)
def dangerous() -> str:
    """Ask first."""
    return "done"


TOOLS = (say, give, dangerous)
BEHAVIOURS: dict[str, tuple[str, dict[str, Any]]] = {
    "tck-artifact-file-url": ("give", {"what": "link"}),
    "tck-artifact-file": ("give", {"what": "file"}),
    "tck-stream-artifact-file": ("give", {"what": "file"}),
    "tck-artifact-data": ("give", {"what": "data"}),
    "tck-artifact-text": ("say", {"text": "Generated text content"}),
    "tck-input-required": ("dangerous", {}),
    "tck-reject-task": ("execute_command", {"command": "rm -rf /"}),
    "tck-stream-artifact-text": ("say", {"text": "Streamed text content"}),
    "tck-stream-001": ("say", {"text": "Stream hello from TCK"}),
    "tck-stream-003": ("say", {"text": "Stream task lifecycle"}),
    "tck-stream-ordering-001": ("say", {"text": "Ordered output"}),
    "test-resubscribe-message-id": ("say", {"text": "Resubscribed", "seconds": 6}),
    "": ("say", {"text": "Hello from TCK"}),
}


def read_behaviour(message: Message, **options: Any) -> list[RequestedCall]:
    """Its words become a call, and are read as every call is; other parts stay, and are refused as usual."""
    if not message.message_id.startswith(("tck-", "test-")):
        return read_calls(message, **options)
    name, args = next(each for prefix, each in BEHAVIOURS.items() if message.message_id.startswith(prefix))
    meant = Message()
    meant.CopyFrom(message)
    words = [part for part in meant.parts if part.HasField("text")]
    for part in words:
        part.text = ""
    if words:
        words[0].text = shlex.join([f"/{name}", *(f"{key}={json.dumps(value)}" for key, value in args.items())])
    return read_calls(meant, **options)


def is_message_wanted(message: Message) -> bool:
    return message.message_id.startswith("tck-message-response") or asks_for_help(message)


async def serve(port: int, reeve: Toolreeve) -> None:
    limits = read_limits(Serve())
    views = ToolViews(new_view(reeve, search=False))
    with bind("127.0.0.1", port) as place:
        access = new_access_control("127.0.0.1", Tokens())
        async with reeve, new_application(reeve, access, views, limits) as application:
            await HttpServer(application, limits).serve([place])


def main() -> None:
    vars(handler)["read_calls"] = read_behaviour
    vars(handler)["asks_for_help"] = is_message_wanted
    vars(handler)["help_text"] = lambda _: "Direct message response"
    vars(handler)["task_number"] = lambda *_: str(uuid.uuid4())  # the TCK uses one message id for many messages
    vars(grpc_server)["find_credential"] = lambda access, _: access.anonymous  # it sends no token
    with tempfile.TemporaryDirectory() as place:
        world = World(Path(place))
        port = int(sys.argv[1])
        own = A2a(requests_per_minute=0, grpc_port=port + 1)
        settings = world.settings(a2a=own, network=Network(allow=("127.0.0.1:*", "localhost:*")))
        asyncio.run(serve(port, Toolreeve(settings=settings, tools=list(TOOLS))))


if __name__ == "__main__":
    main()
