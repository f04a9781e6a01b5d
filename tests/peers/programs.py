"""Programs of other projects, and how they are started."""

import socket
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers"
NODE = PEERS / "node" / "bin" / "node"
PYTHON = Path(sys.executable)
PACKAGES = PEERS / "node_modules" / "@modelcontextprotocol"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


def sdk_example(port: int) -> list[str | Path]:
    """The SDK's server with everything in it, over HTTP."""
    folder = PEERS / "sdk" / "examples" / "servers" / "everything-server"
    start = f"import sys; sys.path.insert(0, {str(folder)!r}); from mcp_everything_server.server import main; main()"
    return [PYTHON, "-c", start, "--port", str(port)]


def node_server(package: str, *arguments: str | Path) -> dict[str, object]:
    """The configuration of a server that is a Node package."""
    return {"command": str(NODE), "args": [str(PACKAGES / package / "dist" / "index.js"), *map(str, arguments)]}


def python_server(name: str, *arguments: str | Path) -> dict[str, object]:
    return {"command": str(PEERS / "py" / "bin" / name), "args": [*map(str, arguments)]}
