"""Baseline on FastMCP: `fast.py stdio`, `fast.py PORT`, or `fast.py proxy COMMAND…`; needs a Python with FastMCP."""

import sys

from fastmcp import FastMCP

server = FastMCP("baseline")


@server.tool
def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    if sys.argv[1] == "proxy":
        from fastmcp.client.transports import StdioTransport
        from fastmcp.server import create_proxy

        create_proxy(StdioTransport(command=sys.argv[2], args=sys.argv[3:]), name="proxy").run(show_banner=False)
    elif sys.argv[1] == "stdio":
        server.run(show_banner=False)
    else:
        server.run(
            transport="streamable-http",
            host="127.0.0.1",
            port=int(sys.argv[1]),
            show_banner=False,
            json_response=True,
            stateless_http=True,
        )
