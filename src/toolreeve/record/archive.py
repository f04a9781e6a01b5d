"""Archives of the record: its first records in one file.

One JSON object per line, with all that the hash covers: the chain can be followed in the file alone. A file does not
show that its own end was cut off, so the record itself keeps the head of each archive. Rotation removes what was
archived in the transaction that records it: a kill leaves all of the records in the database, or all that remain.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from toolreeve.core import json
from toolreeve.record.chain import GENESIS, ChainError, ChainStore, Head, StoredRow

ARCHIVED = "archived"
ROTATED = "rotated"
BASE = b"base"
"""The kind of the line in front of an archive that does not begin with the first record: where it continues."""
CHUNK = 250
MOST_EARLIER = 100
MAX_LINE = 64 * 1024 * 1024


def write_archive(chain: ChainStore, stream: IO[bytes], before: float) -> Head:
    """Write the records up to the first that is not older than `before`. The chain must have been verified."""
    with chain.snapshot():
        head = base_of(chain)
        if head.seq:
            stream.write(json.dumps({"base": head.seq, "hash": head.hash.hex()}) + b"\n")
        for chunk in chain.rows():
            for seq, call_id, kind, body, digest in chunk:
                if not _is_older(body, before):
                    return head
                row = {"seq": seq, "call_id": call_id.decode(), "kind": kind.decode(), "body": body.decode()}
                stream.write(json.dumps(row | {"hash": digest.hex()}) + b"\n")
                head = Head(seq, digest)
    return head


def base_of(chain: ChainStore) -> Head:
    """The record before the first one that is stored: the genesis, or the last that was moved to an archive."""
    first = chain.first()
    return next((each for each in rotations(chain) if each.seq == first - 1), Head(0, GENESIS))


def rotations(chain: ChainStore) -> list[Head]:
    """The ends of the archives that records were moved to, as the stored records have them."""
    heads = []
    for body in chain.bodies(ROTATED):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # a tampered body
            found = json.loads(body)
            heads.append(Head(int(found["last"]), bytes.fromhex(found["head"])))
    return heads


def known_heads(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ends of the archives that these records of archives know, the earlier ones of rotations included."""
    heads: dict[str, None] = {}
    for body in records:
        earlier = body.get("earlier")
        heads |= dict.fromkeys([str(body.get("head")), *map(str, earlier if isinstance(earlier, list) else ())])
    return list(heads)


def rotate(chain: ChainStore, head: Head) -> None:
    """Remove the records up to `head`, which an archive holds. Raises ChainError if they must stay."""
    if chain.hash_at(head.seq) != head.hash:
        raise ChainError("the record has changed since it was archived")
    if chain.open_intents(0, head.seq):
        raise ChainError("a call among them has not ended; choose an earlier time with --before")
    chain.remove_through(head.seq)


def split_base(rows: Sequence[StoredRow]) -> tuple[Head, Sequence[StoredRow]]:
    """Where an archive continues, and its first rows without the line that says so."""
    if rows and rows[0][2] == BASE:
        return Head(rows[0][0], rows[0][4]), rows[1:]
    return Head(0, GENESIS), rows


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
        if number == 1 and "base" in row:
            row = {"seq": row["base"], "call_id": "", "kind": BASE.decode(), "body": "", "hash": row["hash"]}
        texts = [row[key].encode() for key in ("call_id", "kind", "body")]
        if type(row["seq"]) is not int:
            raise TypeError
        return row["seq"], texts[0], texts[1], texts[2], bytes.fromhex(row["hash"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ChainError(f"line {number} is not a record of an archive") from None
