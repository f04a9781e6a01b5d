"""Real NATS servers on free loopback ports, with JetStream in a directory of their own."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("nats-server")
READY_SECONDS = 20.0


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def accepts(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.2):
        return True
    return False


class NatsServer:
    """Can be killed and started again with what it had stored. `config` is a configuration file's text; JetStream, the
    address and the store are given on the command line."""

    def __init__(
        self, folder: Path, *, jetstream: bool = True, config: str = "", env: dict[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self._env = os.environ | (env or {})
        self._options = ["-a", "127.0.0.1", "-p", str(self.port)]
        if jetstream:
            self._options += ["-js", "-sd", str(folder / "data")]
        if config:
            (folder / "nats.conf").write_text(config)
            self._options += ["-c", str(folder / "nats.conf")]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> "NatsServer":
        log = (self.folder / "nats.log").open("ab")
        command = [str(PROGRAM), *self._options]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self._env, cwd=self.folder)
        log.close()
        until = time.monotonic() + READY_SECONDS
        while not accepts(self.port):
            assert self.process.poll() is None, (self.folder / "nats.log").read_text()
            assert time.monotonic() < until, (self.folder / "nats.log").read_text()
            time.sleep(0.01)
        return self

    def kill(self) -> None:
        """As `kill -9`."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.kill()


class NatsCluster:
    """Three servers that keep each stream three times."""

    def __init__(self, folder: Path) -> None:
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f"nats://127.0.0.1:{port}" for port in ports)
        cluster = 'cluster {{ name: c, listen: "127.0.0.1:{port}", routes: [{routes}] }}\n'
        self.servers = [
            NatsServer(
                folder / f"n{number}",
                config=f"server_name: n{number}\n{cluster.format(port=port, routes=routes)}",
            )
            for number, port in enumerate(ports)
        ]

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.servers)

    def start(self) -> "NatsCluster":
        for server in self.servers:
            server.start()
        return self

    def stop(self) -> None:
        for server in self.servers:
            server.stop()
