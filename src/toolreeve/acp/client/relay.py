"""Relays stdin and stdout to a Unix socket outside an agent's sandbox.

An MCP server for that agent. Run as a program with a folder and the name of the socket in it. Imports nothing of ours.
"""

import os
import socket
import sys
import threading


def relay(folder: str, name: str) -> None:
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(name)
        threading.Thread(target=_send, args=(connection,), daemon=True).start()
        while data := connection.recv(1 << 16):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


def _send(connection: socket.socket) -> None:
    while data := os.read(0, 1 << 16):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    relay(sys.argv[1], sys.argv[2])
