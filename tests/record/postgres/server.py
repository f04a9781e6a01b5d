"""A PostgreSQL server of our own, on a socket in a directory of its own."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "autovacuum": "off",
}


class PostgresServer:
    """Runs as the user `postgres` if the tests run as root, for the server refuses to be root."""

    def __init__(self, **settings: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="toolreeve-pg-", dir="/tmp"))
        self._data = self.directory / "data"
        self._user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self._databases = 0
        if os.geteuid() == 0:
            shutil.chown(self.directory, self._user)
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-locale", "-E", "UTF8")
        lines = [f"{key} = '{value}'" for key, value in {**_SETTINGS, **settings}.items()]
        with (self._data / "postgresql.conf").open("a") as file:
            file.write("\n".join([*lines, f"unix_socket_directories = '{self.directory}'"]))
        self.start()

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.directory}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        self._databases += 1
        name = f"test_{self._databases}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def start(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self.directory / "log", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """The postmaster, as the kernel would: its children notice and end."""
        process = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(process, signal.SIGKILL)

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.directory)

    def _run(self, program: str, *arguments: str | Path) -> None:
        path = max(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), default=Path(program))
        as_user: dict[str, Any] = (
            {"user": self._user, "group": self._user, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        done = subprocess.run(
            [path, *arguments],
            check=False,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **as_user,
        )
        assert done.returncode == 0, done.stdout.decode()
