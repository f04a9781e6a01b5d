"""Verification: follows every link and compares the end with the witness.

It distinguishes lost records from tampering. Nothing that a tampered row may hold, of whatever type, keeps the rest
from being checked.
"""

import hashlib
import itertools
import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolreeve.core import json
from toolreeve.record import gaps
from toolreeve.record.archive import base_of, split_base
from toolreeve.record.chain import GENESIS, ChainError, ChainStore, Head, StoredRow, link
from toolreeve.record.process import run_apart
from toolreeve.record.witness import EarlierFile, Sighting, Untrusted, Witness

SHOWN_PROBLEMS = 100
PARALLEL = 200_000
"""A record of so many entries is verified by as many processes as there are cores."""


INTACT = "intact"
LOST = "lost"
UNWITNESSED = "unwitnessed"
TAMPERED = "tampered"
_WORSE = (INTACT, LOST, UNWITNESSED, TAMPERED)
_STATES = {gaps.LOST: LOST, gaps.REPLACED: TAMPERED}


@dataclass(frozen=True, slots=True)
class ChainProblem:
    """One problem of the record. `seq` is where it shows, `call_id` the call of that record, if known.

    `state` is the state it puts the record in: lost (records are missing at the end), unwitnessed (unknown whether any
    are missing, because the witness cannot be trusted) or tampered. `gap` is the record to accept, if there is one.
    """

    seq: int
    text: str
    call_id: str | None = None
    state: str = TAMPERED
    gap: int | None = None

    def __str__(self) -> str:
        whose = f" (call {self.call_id})" if self.call_id else ""
        accept = f"; accept it with `toolreeve audit accept {self.gap}`" if self.gap is not None else ""
        return f"record {self.seq}{whose}: {self.text}{accept}"

    def to_dict(self) -> dict[str, Any]:
        return {"state": self.state, "seq": self.seq, "call_id": self.call_id, "gap": self.gap, "text": self.text}


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """A problem of the chain, and the digest of the row at which it shows: a repair knows it as it was."""

    problem: ChainProblem
    row: str

    def key(self) -> tuple[int, str, str]:
        return self.problem.seq, self.problem.text, self.row


@dataclass(slots=True)
class Verification:
    """`head` is the hash to keep elsewhere. Beyond `SHOWN_PROBLEMS`, problems are counted, not listed.

    `gaps` are all that were ever recorded, by number, and `accepted` those that a person accepted. `since` is the first
    record with a witness, None if there is none yet. `base` is the record before the first: the last that was moved to
    an archive. `repaired` are the problems of the chain that a repair recorded, and that have not changed since.
    """

    records: int = 0
    head: Head = field(default=Head(0, GENESIS))
    problems: list[ChainProblem] = field(default_factory=list)
    unlisted: int = 0
    state: str = INTACT
    since: int | None = None
    gaps: dict[int, dict[str, Any]] = field(default_factory=dict)
    accepted: set[int] = field(default_factory=set)
    base: Head = field(default=Head(0, GENESIS))
    repaired: list[ChainProblem] = field(default_factory=list)
    broken: list[BrokenLink] = field(default_factory=list)
    noted_repairs: set[tuple[int, str, str]] = field(default_factory=set)

    @property
    def ok(self) -> bool:
        return not self.problems

    def join(self, part: "Verification") -> None:
        """Take over what a walk over the next records found."""
        self.records += part.records
        self.head = part.head
        self.broken += part.broken
        self.gaps |= part.gaps
        self.accepted |= part.accepted
        self.noted_repairs |= part.noted_repairs

    def add(self, problem: ChainProblem) -> None:
        self.state = max(self.state, problem.state, key=_WORSE.index)
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append(problem)
        else:
            self.unlisted += 1


def verify(
    chain: ChainStore, *, path: Path, expect: bytes | None = None, progress: Callable[[int], None] | None = None
) -> Verification:
    """Read the whole record in one snapshot. `expect` is a head hash that was kept elsewhere; `progress` gets the
    number of records read so far."""
    found = Verification()
    sighted = _look(Witness(path))  # before the rows: a later witness would be ahead of them
    try:
        _verify(chain, path, sighted, found, expect, progress)
    except ChainError as problem:
        found.add(ChainProblem(found.head.seq, f"the database is damaged: {problem}"))
    return found


def verify_archive(rows: Iterable[Sequence[StoredRow]], *, heads: Container[bytes]) -> Verification:
    """Follow the links of an archive. Its end must be one of `heads`, known from outside the file."""
    found = Verification()
    try:
        chunks = iter(rows)
        found.base, first = split_base(next(chunks, ()))
        _walk(itertools.chain([first], chunks), found, None, None)
        _settle(found)
    except ChainError as problem:
        found.add(ChainProblem(found.head.seq, f"the archive is damaged: {problem}"))
    _add_open_gaps(found)
    if found.head.hash not in heads:
        text = "neither the record nor --expect confirms that the archive ends here; records may be missing"
        found.add(ChainProblem(found.head.seq, text, state=UNWITNESSED))
    return found


def _verify(
    chain: ChainStore,
    path: Path,
    sighted: Sighting | Untrusted,
    found: Verification,
    expect: bytes | None,
    progress: Callable[[int], None] | None,
) -> None:
    with chain.snapshot():
        stored = chain.stored_head()
        found.base = base_of(chain)
        seen = _walk_ranges(chain, found, stored, expect, progress)
        if seen is None:
            rows = chain.rows() if progress is None else _reporting(chain.rows(), progress)
            seen = _walk(rows, found, stored, expect)
        _settle(found)
        _consult(chain, path, sighted, found)
    _compare(found, stored, seen)
    if expect is not None and expect not in seen.values():
        found.add(ChainProblem(found.head.seq, f"no record has the expected hash {expect.hex()}"))


def _reporting(chunks: Iterable[Sequence[StoredRow]], progress: Callable[[int], None]) -> Iterator[Sequence[StoredRow]]:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        progress(count)
        yield chunk


def _look(witness: Witness) -> Sighting | Untrusted:
    try:
        return witness.look()
    except Untrusted as problem:
        return problem


def _consult(chain: ChainStore, path: Path, sighted: Sighting | Untrusted, found: Verification) -> None:
    """Compare with the witness, and add earlier gaps that were not accepted."""
    known = chain.witnessed()
    found.since = None if known is None else known.since

    def look() -> Sighting:
        if isinstance(sighted, Untrusted):
            raise sighted
        return sighted

    if found.since is not None:
        finding = gaps.examine(chain, known, look, name="the witness")
    else:
        finding = gaps.first_look(chain, known, look, EarlierFile(path))
    if finding is not None:
        seq = finding.last or found.head.seq
        found.add(ChainProblem(seq, finding.text, state=_STATES.get(finding.kind, UNWITNESSED)))
    _add_open_gaps(found)


def _add_open_gaps(found: Verification) -> None:
    for seq, body in found.gaps.items():
        if seq not in found.accepted:
            state = _STATES.get(str(body.get("finding")), UNWITNESSED)
            found.add(ChainProblem(seq, str(body.get("message")), state=state, gap=seq))


def _walk(
    chunks: Iterable[Sequence[StoredRow]], found: Verification, stored: Head | None, expect: bytes | None
) -> dict[int, bytes]:
    """Follow the links; returns the hashes found at the stored head, and the expected one."""
    number, previous = found.base.seq, found.base.hash
    marked = -1 if stored is None else stored.seq
    seen: dict[int, bytes] = {number: previous} if number and previous == expect else {}
    for chunk in chunks:
        found.records += len(chunk)
        for seq, call_id, kind, body, digest in chunk:
            number += 1
            try:
                fits = seq == number and link(previous, seq, call_id, kind, body) == digest
            except TypeError:  # a NULL, which only an altered schema allows
                fits = False
            if not fits:
                if not _is_noted(number, (seq, call_id, kind, body, digest), previous):
                    problem = _judge(number, seq, call_id)
                    found.broken.append(BrokenLink(problem, _digest(seq, call_id, kind, body, digest)))
                number = max(seq, 0)
            if kind in _OWN:
                _note(found, seq, kind, body)
            if seq == marked or digest == expect:
                seen[seq] = digest
            previous = digest
    found.head = Head(number, previous)
    return seen


def _walk_ranges(
    chain: ChainStore,
    found: Verification,
    stored: Head | None,
    expect: bytes | None,
    progress: Callable[[int], None] | None,
) -> dict[int, bytes] | None:
    """As `_walk`, each range in a process of its own: what a walk knows after a record is in that record. None for a
    record that is too short to gain by it, or if rows were moved to an archive meanwhile."""
    count = cores()
    total = stored.seq - found.base.seq if stored is not None and type(stored.seq) is int else 0
    if count < 2 or total < PARALLEL:
        return None
    bounds = [found.base.seq + total * number // count for number in range(1, count)]
    ranges = zip([None, *bounds], [*bounds, None], strict=True)
    reopen = chain.reopener()
    first = chain.first()
    with ThreadPoolExecutor(count) as threads:
        jobs = [threads.submit(run_apart, _walk_range, reopen, each, found.base, stored, expect) for each in ranges]
        whole = Verification(base=found.base)
        seen: dict[int, bytes] = {}
        for job in jobs:
            began, part, part_seen = job.result()
            if began != first:
                return None
            whole.join(part)
            seen |= part_seen
            if progress is not None:
                progress(whole.records)
    found.join(whole)
    return seen


def cores() -> int:
    return len(os.sched_getaffinity(0))


def _walk_range(
    reopen: Callable[[], AbstractContextManager[ChainStore]],
    limits: tuple[int | None, int | None],
    base: Head,
    stored: Head | None,
    expect: bytes | None,
) -> tuple[int, Verification, dict[int, bytes]]:
    """In another process: also the number of the first record there."""
    low, high = limits
    with reopen() as chain:
        before = None if low is None else chain.head_at(low)
        part = Verification(base=base if before is None else Head(max(before.seq, 0), before.hash))
        seen = _walk(chain.rows(low, high), part, stored, expect)
        return chain.first(), part, seen


def _settle(found: Verification) -> None:
    """Broken links are problems, unless a later repair recorded just these."""
    for each in found.broken:
        if each.key() in found.noted_repairs:
            found.repaired.append(each.problem)
        else:
            found.add(each.problem)


def _digest(*row: Any) -> str:
    return hashlib.sha256(repr(row).encode()).hexdigest()


def _judge(expected: int, seq: int, call_id: bytes | None) -> ChainProblem:
    """The problem at this record: records missing before it, or the record itself."""
    name = (call_id or b"").decode(errors="replace")
    if seq > expected:
        gap = f"record {expected} is" if seq == expected + 1 else f"records {expected} to {seq - 1} are"
        return ChainProblem(expected, f"removed: {gap} missing before record {seq} (call {name})")
    if seq < expected:
        return ChainProblem(seq, "inserted: no record has such a number", name)
    return ChainProblem(seq, "changed, inserted or moved: its hash does not fit it and the record before it", name)


REPAIRED = "repaired"
_OWN = frozenset({gaps.GAP.encode(), gaps.ACCEPTED.encode(), REPAIRED.encode()})


def _is_noted(expected: int, row: StoredRow, previous: bytes) -> bool:
    """Whether the records missing before this one are those that it reports as lost."""
    seq, call_id, kind, body, digest = row
    if kind != gaps.GAP.encode() or gaps.bounds(_body(body)) != (expected, seq - 1):
        return False
    try:
        return link(previous, seq, call_id, kind, body) == digest
    except TypeError:
        return False


def _note(found: Verification, seq: int, kind: bytes, body: bytes) -> None:
    fields = _body(body)
    if kind == gaps.GAP.encode():
        found.gaps[seq] = fields
    elif kind == REPAIRED.encode():
        found.noted_repairs |= _repairs(fields)
    elif type(fields.get("gap")) is int:
        found.accepted.add(fields["gap"])


def _repairs(fields: dict[str, Any]) -> set[tuple[int, str, str]]:
    listed = fields.get("problems")
    return {
        (each["seq"], str(each.get("text")), str(each.get("row")))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and type(each.get("seq")) is int
    }


def _body(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _compare(found: Verification, stored: Head | None, seen: dict[int, bytes]) -> None:
    """The checkpoint in the database is written with the rows: a difference means tampering."""
    last = found.head.seq
    if stored is None:
        found.add(ChainProblem(last, "the checkpoint was removed from the database"))
    elif stored.seq > last:
        gap = f"record {stored.seq} is" if stored.seq == last + 1 else f"records {last + 1} to {stored.seq} are"
        found.add(ChainProblem(stored.seq, f"removed from the end: by the checkpoint in the database, {gap} missing"))
    elif stored.seq < last:
        found.add(ChainProblem(last, "inserted at the end: the checkpoint in the database does not know it"))
    elif seen.get(last, stored.hash) != stored.hash:
        found.add(ChainProblem(last, "replaced: the checkpoint in the database saw another record here"))
