"""Stored credentials in SQL (`record.credentials.CredentialTable`)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from toolreeve.core import json
from toolreeve.record.credentials import LINK, StoredCredential
from toolreeve.record.sql.connection import SqlConnection, TableEngine


class SqlCredentials:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def add(self, credential: StoredCredential) -> None:
        await self._engine.transact(partial(_add, credential=credential))

    async def list(self, *, now: float) -> Sequence[StoredCredential]:
        return await self._engine.read(partial(_list, now=now))

    async def revoke(self, number: str) -> StoredCredential | None:
        made_with_it = "substr(id, 1, length(?)) = ?"
        values = (number, f"{number}.", f"{number}.")
        return await self._engine.transact(partial(_take, where=f"id = ? OR {made_with_it}", values=values))

    async def redeem(self, digest: bytes, *, now: float) -> StoredCredential | None:
        where = f"digest = ? AND kind = '{LINK}' AND expires > ?"
        return await self._engine.transact(partial(_take, where=where, values=(digest, now)))


def _add(database: SqlConnection, *, credential: StoredCredential) -> None:
    database.execute("DELETE FROM credentials WHERE expires < ?", (credential.created,))
    values = (
        credential.id,
        credential.kind,
        credential.digest,
        credential.name,
        credential.user,
        credential.role,
        json.dumps(credential.scopes),
        json.dumps(credential.tools),
        credential.created,
        credential.expires,
    )
    database.execute(f"INSERT INTO credentials ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608


def _list(database: SqlConnection, *, now: float) -> Sequence[StoredCredential]:
    query = f"SELECT {_COLUMNS} FROM credentials WHERE expires IS NULL OR expires > ? ORDER BY created"  # noqa: S608
    return [_row(each) for each in database.execute(query, (now,))]


def _take(database: SqlConnection, *, where: str, values: tuple[Any, ...]) -> StoredCredential | None:
    query = f"DELETE FROM credentials WHERE {where} RETURNING {_COLUMNS}"  # noqa: S608 - conditions of this module
    found = database.execute(query, values).fetchone()
    return None if found is None else _row(found)


def _row(columns: tuple[Any, ...]) -> StoredCredential:
    number, kind, digest, name, user, role, scopes, tools, created, expires = columns
    return StoredCredential(
        id=number,
        kind=kind,
        digest=digest,
        name=name,
        user=user,
        role=role,
        scopes=tuple(json.loads(scopes)),
        tools=tuple(json.loads(tools)),
        created=created,
        expires=expires,
    )


_COLUMNS = "id, kind, digest, name, user, role, scopes, tools, created, expires"
