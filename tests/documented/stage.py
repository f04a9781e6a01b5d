"""What the documented examples run on: a workspace, a web server, agents; and the list of all examples."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.world import World
from toolreeve import (
    BaseAgent,
    BaseAgentConfig,
    ExecutionContext,
    InputField,
    OutputField,
    PermissionMode,
    PermissionPolicy,
    Signature,
    Toolreeve,
)
from toolreeve.config import Network

BUILTIN = {"name": "toolreeve_builtin", "transport": {"type": "builtin"}}
PAGE = b'<html><a href="/page">Link</a><a href="/other">Other</a></html>'


class Question(Signature):
    question: str = InputField(description="User question")
    answer: str = OutputField(description="Answer")


CONFIG = BaseAgentConfig(llm_provider="openai", model="gpt-4", temperature=0.7)


class Stage:
    def __init__(self, world: World, url: str) -> None:
        self.world = world
        self.url = url
        self.place = world.workspace
        self.settings = world.settings(network=Network(allow=(url.removeprefix("http://"),)))

    def agent(self, **options: Any) -> BaseAgent:
        return BaseAgent(config=CONFIG, signature=Question(), settings=self.settings, **options)

    def trusted(self, **options: Any) -> BaseAgent:
        policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
        return self.agent(permission_policy=policy, **options)

    def reeve(self, **options: Any) -> Toolreeve:
        policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
        return Toolreeve(settings=self.settings, policy=policy, **options)

    async def execute(self, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        """The documented call, by an agent that asks nobody."""
        async with self.trusted(mcp_servers=[BUILTIN]) as agent:
            return await agent.execute_mcp_tool(tool, params)

    async def data(self, tool: str, **args: Any) -> dict[str, Any]:
        """The data of a successful call in the documented form of a result."""
        async with self.reeve() as reeve:
            result = (await reeve.call(tool, args)).to_dict()
        assert result["success"], result
        found: dict[str, Any] = result["data"]
        return found


Example = Callable[[Stage], Awaitable[None]]
EXAMPLES: dict[str, Example] = {}
NOT_YET: dict[str, str] = {}
"""Examples that cannot run, with the capability that brings them."""


def example(title: str) -> Callable[[Example], Example]:
    def add(function: Example) -> Example:
        assert title not in EXAMPLES
        EXAMPLES[title] = function
        return function

    return add


class _Pages(BaseHTTPRequestHandler):
    def _reply(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        status = {"POST": 201}.get(self.command, 404 if self.path == "/missing" else 200)
        self.send_response(status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    do_GET = do_POST = do_PUT = do_DELETE = _reply

    def log_message(self, *_: Any) -> None:
        """The server is silent."""


@contextmanager
def web_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
