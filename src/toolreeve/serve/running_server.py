"""Address of the running server, in a file that it keeps locked.

The kernel releases the lock when the server dies: an address without a lock belongs to nobody.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE = "serve.url"


@contextmanager
def announce(state: Path, url: str) -> Iterator[None]:
    """Name the address while inside, unless another server with this state does."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (state / FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield
            return
        file.truncate(0)
        file.write(url)
        file.flush()
        yield


def find_running(state: Path) -> str | None:
    """The address of a server that runs with this state."""
    path = state / FILE
    if not path.exists():
        return None
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read() or None
    return None
