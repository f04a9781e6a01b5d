"""Archives of the record: its first records in one file.

One JSON object per line, with all that the hash covers: the chain can be followed in the file alone. A file does not
show that its own end was cut off, so the record itself keeps the head of each archive.
"""

from collections.abc import Iterator, Sequence
from typing import IO, Any

from toolreeve.core import json
from toolreeve.record.chain import GENESIS, ChainError, ChainStore, Head, StoredRow

ARCHIVED = "archived"
CHUNK = 250
MAX_LINE = 64 * 1024 * 1024


def write_archive(chain: ChainStore, stream: IO[bytes], before: float) -> Head:
    """Write the records up to the first that is not older than `before`. The chain must have been verified."""
    head = Head(0, GENESIS)
    with chain.snapshot():
        for chunk in chain.rows():
            for seq, call_id, kind, body, digest in chunk:
                if not _is_older(body, before):
                    return head
                row = {"seq": seq, "call_id": call_id.decode(), "kind": kind.decode(), "body": body.decode()}
                stream.write(json.dumps(row | {"hash": digest.hex()}) + b"\n")
                head = Head(seq, digest)
    return head


def _is_older(body: bytes, before: float) -> bool:
    """A record without a time, such as that of a new witness, goes with those before it."""
    at = json.loads(body).get("ts")
    return not isinstance(at, int | float) or at < before


def read_archive(stream: IO[bytes]) -> Iterator[Sequence[StoredRow]]:
    """The rows of an archive. Raises ChainError for a line that is none."""
    chunk: list[StoredRow] = []
    number = 0
    while line := stream.readline(MAX_LINE):
        number += 1
        chunk.append(_row(line, number))
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    yield chunk


def _row(line: bytes, number: int) -> StoredRow:
    try:
        row: dict[str, Any] = json.loads(line)
        texts = [row[key].encode() for key in ("call_id", "kind", "body")]
        if type(row["seq"]) is not int:
            raise TypeError
        return row["seq"], texts[0], texts[1], texts[2], bytes.fromhex(row["hash"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ChainError(f"line {number} is not a record of an archive") from None
