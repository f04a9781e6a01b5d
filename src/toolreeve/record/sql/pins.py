"""Pins of upstream tool definitions in SQL (`record.pins.PinTable`)."""

from collections.abc import Mapping, Sequence
from functools import partial

from toolreeve.record.pins import ChangedPin, Digest, OfferedDefinition, WaitingPin
from toolreeve.record.sql.connection import SqlConnection, TableEngine


class SqlPins:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def compare(
        self, server: str, place: str, offered: Sequence[OfferedDefinition], digest: Digest
    ) -> Mapping[str, ChangedPin]:
        return await self._engine.transact(
            partial(_compare, server=server, place=place, offered=offered, digest=digest)
        )

    async def waiting(self, server: str) -> Sequence[WaitingPin]:
        return await self._engine.read(partial(_waiting, server=server))

    async def accept(self, server: str, place: str, wanted: Mapping[str, bytes], digest: Digest) -> Sequence[str]:
        return await self._engine.transact(partial(_accept, server=server, place=place, wanted=wanted, digest=digest))

    async def pinned_digest(self, server: str, place: str, tool: str) -> bytes | None:
        return await self._engine.read(partial(_pinned_digest, server=server, place=place, tool=tool))

    def read_pinned_digest(self, server: str, place: str, tool: str) -> bytes | None:
        return self._engine.read_blocking(partial(_pinned_digest, server=server, place=place, tool=tool))


def _compare(
    database: SqlConnection, *, server: str, place: str, offered: Sequence[OfferedDefinition], digest: Digest
) -> dict[str, ChangedPin]:
    database.lock(f"pins {server} {place}")
    known = {tool: rest for tool, *rest in database.execute(_KNOWN, (server, place))}
    changed: dict[str, ChangedPin] = {}
    for tool, found, definition in offered:
        where = (server, place, tool)
        pinned = known.get(tool)
        if pinned is None:
            database.execute(_PIN, (*where, found, definition))
            continue
        pinned_digest, pinned_definition, earlier_offer = pinned
        if pinned_digest != found:
            is_new = earlier_offer is None or digest(earlier_offer) != found
            changed[tool] = ChangedPin(pinned_definition, is_new)
            if is_new:
                database.execute(_OFFER, (definition, *where))
        elif earlier_offer is not None:
            database.execute(_WITHDRAW, where)
    return changed


def _waiting(database: SqlConnection, *, server: str) -> list[WaitingPin]:
    return [WaitingPin(*row) for row in database.execute(_WAITING, (server,))]


def _accept(
    database: SqlConnection, *, server: str, place: str, wanted: Mapping[str, bytes], digest: Digest
) -> list[str]:
    database.lock(f"pins {server} {place}")
    accepted = []
    for tool, expected in wanted.items():
        where = (server, place, tool)
        row = database.execute(_OFFERED, where).fetchone()
        if row is not None and row[0] is not None and digest(row[0]) == expected:
            database.execute(_ACCEPT, (expected, *where))
            accepted.append(tool)
    return accepted


def _pinned_digest(database: SqlConnection, *, server: str, place: str, tool: str) -> bytes | None:
    row = database.execute(_DIGEST, (server, place, tool)).fetchone()
    return None if row is None else bytes(row[0])


_KNOWN = "SELECT tool, digest, definition, offered FROM pins WHERE server = ? AND place = ?"
_PIN = "INSERT INTO pins (server, place, tool, digest, definition) VALUES (?, ?, ?, ?, ?)"
_OFFER = "UPDATE pins SET offered = ? WHERE server = ? AND place = ? AND tool = ?"
_WITHDRAW = "UPDATE pins SET offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_WAITING = "SELECT place, tool, definition, offered FROM pins WHERE server = ? AND offered IS NOT NULL ORDER BY tool"
_OFFERED = "SELECT offered FROM pins WHERE server = ? AND place = ? AND tool = ?"
_ACCEPT = "UPDATE pins SET digest = ?, definition = offered, offered = NULL WHERE server = ? AND place = ? AND tool = ?"
_DIGEST = "SELECT digest FROM pins WHERE server = ? AND place = ? AND tool = ?"
