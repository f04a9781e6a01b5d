"""Folders in memory for the databases of tests: a disk takes milliseconds for each of their many fsyncs.

Not for workspaces: a sandbox has a /dev of its own. Where the machine has no such room, they are on the disk.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
LEAST_FREE = 2 << 30
_folder = MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > LEAST_FREE else None


@contextmanager
def memory_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="toolreeve-test-", dir=_folder, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
