"""The client process of one scenario: hands its environment, URL and streams to the fork server, and waits.

Nothing but the standard library is loaded, so that dozens at once cost next to nothing.
"""

import json
import os
import socket
import sys


def main() -> int:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(sys.argv[1])
        told = json.dumps({"environ": dict(os.environ), "url": sys.argv[-1]}).encode()
        socket.send_fds(line, [len(told).to_bytes(4)], [1, 2])
        line.sendall(told)
        answer = line.recv(1)
    return answer[0] if answer else 1


if __name__ == "__main__":
    sys.exit(main())
