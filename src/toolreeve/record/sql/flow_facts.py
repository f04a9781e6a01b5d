"""Facts about the flow of information in SQL (`record.flow_facts.FlowTable`)."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from toolreeve.core.labels import Confidentiality, Integrity, Labels
from toolreeve.record.chain import Line
from toolreeve.record.flow_facts import FactKind, FlowFact
from toolreeve.record.journal import VERSION
from toolreeve.record.sql.connection import SqlConnection, TableEngine, placeholders

LABEL = "label"
"""The kind of audit records about declassification, known recipients and their revocation."""
MOST = 10_000
"""Facts of one user; beyond it the oldest are dropped, which asks more and never less."""
_RECORDED = frozenset((FactKind.TRUSTED, FactKind.SOURCE, FactKind.KNOWN))
_Values = dict[str, str | float | int | None]


class SqlFlowFacts:
    def __init__(self, engine: TableEngine, now: Callable[[], float]) -> None:
        self._engine = engine
        self._now = now

    async def add(self, facts: Sequence[FlowFact]) -> None:
        await self._engine.transact(partial(self._add, facts=facts, now=self._now()))

    async def find(self, *, user: str, session: str) -> Sequence[FlowFact]:
        values: _Values = {"user": user, "session": session, "now": self._now()}
        return await self._engine.read(partial(_select, where=f"{_OF_SESSION} AND {_LIVE}", values=values))

    async def list(self, *, user: str | None = None) -> Sequence[FlowFact]:
        values: _Values = {"user": user, "now": self._now()}
        where = f"kind != 'said' AND (CAST(:user AS TEXT) IS NULL OR user = :user) AND {_LIVE}"
        return await self._engine.read(partial(_select, where=where, values=values))

    async def revoke(self, id: str, *, by: str) -> FlowFact | None:
        return await self._engine.transact(partial(self._revoke, id=id, by=by)) if id else None

    async def labels_read(
        self, *, user: str, session: str, after: int, held: Sequence[str]
    ) -> tuple[frozenset[str], int]:
        return await self._engine.read(partial(_labels_read, user=user, session=session, after=after, held=held))

    async def label_content(self, digests: Sequence[str], labels: Labels, *, call_id: str, at: float) -> None:
        work = partial(_label_content, digests=digests, labels=labels, call_id=call_id, at=at)
        await self._engine.transact(work)

    async def has_content_labels(self) -> bool:
        return await self._engine.read(_has_content_labels)

    async def labels_of(self, digests: Sequence[str]) -> dict[str, Labels]:
        return await self._engine.read(partial(_labels_of, digests=digests))

    def _add(self, database: SqlConnection, *, facts: Sequence[FlowFact], now: float) -> None:
        database.lock("flow_facts")
        database.execute("DELETE FROM flow_facts WHERE expires <= ?", (now,))
        database.executemany(_INSERT, [[getattr(fact, name) for name in _NAMES] for fact in facts])
        for user in {fact.user for fact in facts}:
            database.execute(_DROP_OLDEST, {"user": user, "most": MOST})
        recorded = [_line(fact, {"by": fact.by, "trusted": True}, now) for fact in facts if fact.kind in _RECORDED]
        if recorded:
            self._engine.write_lines(database, recorded)

    def _revoke(self, database: SqlConnection, *, id: str, by: str) -> FlowFact | None:
        now = self._now()
        where = f"kind != 'said' AND substr(id, 1, length(:id)) = :id AND {_LIVE}"
        found = _select(database, where=where, values={"id": id, "now": now})
        if len(found) != 1:
            return None
        if database.execute("DELETE FROM flow_facts WHERE id = ?", (found[0].id,)).rowcount != 1:
            return None
        self._engine.write_lines(database, [_line(found[0], {"by": by, "trusted": False}, now)])
        return found[0]


def _line(fact: FlowFact, more: dict[str, Any], now: float) -> Line:
    what = {"fact": fact.id, "of": str(fact.kind), "value": fact.value, "parameter": fact.parameter}
    whose = {"session": fact.session, "user": fact.user, "tool": fact.tool, "expires": fact.expires}
    return LABEL, "", {"v": VERSION, "ts": now, **whose, **what, **more}


def _select(database: SqlConnection, *, where: str, values: _Values) -> list[FlowFact]:
    query = f"SELECT {', '.join(_NAMES)} FROM flow_facts WHERE {where} ORDER BY at, id"  # noqa: S608
    rows = [dict(zip(_NAMES, row, strict=True)) for row in database.execute(query, values)]
    return [FlowFact(**row | {"kind": FactKind(row["kind"])}) for row in rows]


def _labels_read(
    database: SqlConnection, *, user: str, session: str, after: int, held: Sequence[str]
) -> tuple[frozenset[str], int]:
    without = list(held) or [""]
    statement = _LABELS_READ.format(labels=database.labels.format(f"call_id NOT IN ({placeholders(len(without))})"))
    last, listed = database.execute(statement, (*without, session, user, after)).fetchone()
    return frozenset(re.findall(r'"([a-z]+)"', listed or "")), last or after


def _label_content(database: SqlConnection, *, digests: Sequence[str], labels: Labels, call_id: str, at: float) -> None:
    database.lock("content_labels")
    known = _labels_of(database, digests=digests)
    rows = []
    for digest in digests:
        joined = known.get(digest, labels).join(labels)
        rows.append((digest, joined.integrity.value, joined.confidentiality.value, call_id, at))
    database.executemany(_LABEL_CONTENT, rows)
    database.execute(_DROP_CONTENT)


def _has_content_labels(database: SqlConnection) -> bool:
    return database.execute("SELECT 1 FROM content_labels LIMIT 1").fetchone() is not None


def _labels_of(database: SqlConnection, *, digests: Sequence[str]) -> dict[str, Labels]:
    found = {}
    for digest in digests:
        row = database.execute(_CONTENT, (digest,)).fetchone()
        if row is not None:
            found[digest] = Labels(Integrity(row[0]), Confidentiality(row[1]))
    return found


_NAMES = ("id", "kind", "user", "session", "tool", "parameter", "value", "by", "at", "expires")
_LIVE = "(expires IS NULL OR expires > :now)"
_OF_SESSION = "user = :user AND session IN ('', :session)"
_INSERT = f"""
    INSERT INTO flow_facts ({", ".join(_NAMES)}) VALUES ({", ".join("?" for _ in _NAMES)})
    ON CONFLICT (id) DO NOTHING
"""  # noqa: S608
_DROP_OLDEST = """
    DELETE FROM flow_facts WHERE id IN (
        SELECT id FROM flow_facts WHERE user = :user ORDER BY at DESC, id DESC LIMIT 1000000000 OFFSET :most
    )
"""
_LABELS_READ = """
    SELECT max(seq), {labels} FROM audit WHERE session = ? AND user = ? AND kind = 'call' AND seq > ?
"""
_LABEL_CONTENT = """
    INSERT INTO content_labels (digest, integrity, confidentiality, call_id, at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (digest) DO UPDATE SET integrity = excluded.integrity, confidentiality = excluded.confidentiality,
        call_id = excluded.call_id, at = excluded.at
"""
_CONTENT = "SELECT integrity, confidentiality FROM content_labels WHERE digest = ?"
_DROP_CONTENT = """
    DELETE FROM content_labels WHERE digest IN (
        SELECT digest FROM content_labels ORDER BY at DESC LIMIT 1000000000 OFFSET 200000
    )
"""
