"""A process that holds a session to a server, prints its process ids, and waits to be killed."""

import asyncio
import json
import os
import sys

from toolreeve.core.mcp import Era
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.process import inherited
from toolreeve.upstream.transports.stdio import StdioTransport


async def main() -> None:
    session = UpstreamSession(
        StdioTransport(sys.argv[1:], environment=inherited(os.environ)), client_info={"name": "holder"}
    )
    await session.open(Era.LEGACY, 20)
    print(json.dumps(await session.request("tools/call", {}, timeout=20)), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
