"""Fork server of the conformance clients: loads everything once, and forks for each scenario.

Each client is a process of its own, with the environment and the streams that the suite gave it.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import traceback

import toolreeve.runtime.toolreeve
import toolreeve.upstream.oauth.provider
import toolreeve.upstream.session.session
import toolreeve.upstream.transports.stdio
from tests.conformance import client

LOADED = (
    toolreeve.upstream.oauth.provider,
    toolreeve.upstream.session.session,
    toolreeve.upstream.transports.stdio,
    toolreeve.runtime.toolreeve,
)


def serve(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(128)
        print("ready", flush=True)
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                door.close()
                os._exit(_answer(line))
            line.close()


def _answer(line: socket.socket) -> int:
    size, streams, _, _ = socket.recv_fds(line, 4, 2)
    told = json.loads(_exactly(line, int.from_bytes(size)))
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
    os.environ.clear()
    os.environ.update(told["environ"])
    sys.argv[1:] = [told["url"]]
    status = 0
    try:
        asyncio.run(client.main())
    except Exception:
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    line.sendall(bytes([status]))
    return status


def _exactly(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += line.recv(size - len(data))
    return data


if __name__ == "__main__":
    serve(sys.argv[1])
