"""Fingerprints: what is at a path, so that any difference shows.

File tools, trials and undo compare the fingerprints of each other: there is one format.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator

CHUNK = 1 << 20
LARGEST_DIGESTED = 160 * 1024 * 1024
"""A larger file is known by its size and modification time instead of its digest."""


def read_chunks(descriptor: int) -> Iterator[bytes]:
    """All data of a file, from its start; its position is not used."""
    offset = 0
    while chunk := os.pread(descriptor, CHUNK, offset):
        yield chunk
        offset += len(chunk)


def content_fingerprint(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def size_fingerprint(found: os.stat_result) -> str:
    """For a file whose content is not read."""
    return f"stat:{found.st_size}:{found.st_mtime_ns}"


def file_fingerprint(descriptor: int, found: os.stat_result) -> str:
    """The digest of the content; for a file too large for that, size and modification time."""
    return size_fingerprint(found) if found.st_size > LARGEST_DIGESTED else content_fingerprint(read_chunks(descriptor))


def entry_fingerprint(directory: int, name: str, found: os.stat_result, of_file: Callable[[], str]) -> str:
    """Of an entry of any kind; `of_file` reads a regular file."""
    if stat.S_ISLNK(found.st_mode):
        return link_fingerprint(directory, name)
    if stat.S_ISDIR(found.st_mode):
        return f"directory:{found.st_dev}:{found.st_ino}"
    return of_file() if stat.S_ISREG(found.st_mode) else f"other:{found.st_mode}"


def link_fingerprint(directory: int, name: str) -> str:
    return f"link:{os.readlink(name, dir_fd=directory)}"
