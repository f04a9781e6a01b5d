"""Address and version of the running server, in a locked file.

The kernel releases the lock when the server dies: an address without a lock belongs to nobody.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

FILE = "serve.url"


class RunningServer(NamedTuple):
    url: str
    version: str


@contextmanager
def announce(state: Path, server: RunningServer) -> Iterator[None]:
    """Name the server while inside, unless another one with this state is named."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (state / FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield
            return
        file.truncate(0)
        file.write("\n".join(server))
        file.flush()
        yield


def find_running(state: Path) -> RunningServer | None:
    """The server that runs with this state."""
    path = state / FILE
    if not path.exists():
        return None
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            url, _, version = file.read().partition("\n")
            return RunningServer(url, version or "older") if url else None
    return None
