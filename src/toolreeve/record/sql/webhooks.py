"""Webhooks and their outbox in SQL (`record.webhooks.WebhookTable`)."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from toolreeve.core import json
from toolreeve.record.sql.connection import SqlConnection, TableEngine
from toolreeve.record.webhooks import Delivery, DeliveryStatistics, NewDelivery, RetryConfig, Webhook

_COLUMNS = "id, webhook, event_id, task, body, attempts, state, problem, due, created"


class SqlWebhooks:
    def __init__(self, engine: TableEngine) -> None:
        self._engine = engine

    async def put(self, webhook: Webhook, *, now: float) -> None:
        await self._engine.transact(partial(_put, webhook=webhook, now=now))

    async def list(self) -> Sequence[Webhook]:
        return await self._engine.read(_list)

    async def delete(self, number: str) -> bool:
        return await self._engine.transact(partial(_delete, number=number))

    async def cursor(self, source: str) -> int | None:
        return await self._engine.read(partial(_cursor, source=source))

    async def enqueue(
        self, source: str, *, before: int | None, after: int, deliveries: Sequence[NewDelivery], now: float
    ) -> bool:
        work = partial(_enqueue, source=source, before=before, after=after, deliveries=deliveries, now=now)
        return await self._engine.transact(work)

    async def claim(self, webhook: str, *, now: float, lease: float) -> Delivery | None:
        if await self._engine.read(partial(_due, webhook=webhook, now=now)) is None:
            return None
        return await self._engine.transact(partial(_claim, webhook=webhook, now=now, lease=lease))

    async def delivered(self, delivery: Delivery, *, status: int, now: float) -> None:
        await self._engine.transact(partial(_delivered, delivery=delivery, status=status, now=now))

    async def failed(
        self, delivery: Delivery, *, status: int | None, problem: str, due: float | None, now: float
    ) -> None:
        work = partial(_failed, delivery=delivery, status=status, problem=problem, due=due, now=now)
        await self._engine.transact(work)

    async def deliveries(self, webhook: str, *, state: str, limit: int) -> Sequence[Delivery]:
        return await self._engine.read(partial(_deliveries, webhook=webhook, state=state, limit=limit))

    async def replay(self, webhook: str, *, number: int | None, now: float) -> int:
        return await self._engine.transact(partial(_replay, webhook=webhook, number=number, now=now))

    async def statistics(self) -> Mapping[str, DeliveryStatistics]:
        return await self._engine.read(_statistics)


def _put(database: SqlConnection, *, webhook: Webhook, now: float) -> None:
    database.execute(
        "INSERT INTO webhooks (id, body, created) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
        (webhook.id, json.dumps(dataclasses.asdict(webhook)), now),
    )


def _list(database: SqlConnection) -> Sequence[Webhook]:
    return [_webhook(body) for (body,) in database.execute("SELECT body FROM webhooks ORDER BY created, id")]


def _webhook(body: bytes) -> Webhook:
    fields: dict[str, Any] = json.loads(body)
    fields["retry"] = RetryConfig(**fields["retry"])
    return Webhook(**{**fields, "events": tuple(fields["events"]), "without": tuple(fields["without"])})


def _delete(database: SqlConnection, *, number: str) -> bool:
    database.execute("DELETE FROM deliveries WHERE webhook = ?", (number,))
    return database.execute("DELETE FROM webhooks WHERE id = ?", (number,)).rowcount == 1


def _cursor(database: SqlConnection, *, source: str) -> int | None:
    found = database.execute("SELECT place FROM webhook_cursors WHERE source = ?", (source,)).fetchone()
    return None if found is None else int(found[0])


def _enqueue(
    database: SqlConnection,
    *,
    source: str,
    before: int | None,
    after: int,
    deliveries: Sequence[NewDelivery],
    now: float,
) -> bool:
    database.lock(f"webhook_cursors {source}")
    if _cursor(database, source=source) != before:
        return False
    database.execute(_MOVE, (source, after))
    rows = [(*each, now, now) for each in deliveries]
    database.executemany(
        "INSERT INTO deliveries (webhook, event_id, task, body, due, created) VALUES (?, ?, ?, ?, ?, ?)", rows
    )
    return True


def _due(database: SqlConnection, *, webhook: str, now: float) -> Delivery | None:
    row = database.execute(_NEXT, {"webhook": webhook, "now": now}).fetchone()
    return None if row is None else _delivery(row)


def _claim(database: SqlConnection, *, webhook: str, now: float, lease: float) -> Delivery | None:
    """Found and leased in one transaction: of two processes, one gets it."""
    database.lock(f"deliveries {webhook}")
    found = _due(database, webhook=webhook, now=now)
    if found is not None:
        database.execute("UPDATE deliveries SET due = ? WHERE id = ?", (now + lease, found.id))
    return found


def _delivered(database: SqlConnection, *, delivery: Delivery, status: int, now: float) -> None:
    database.execute("DELETE FROM deliveries WHERE id = ?", (delivery.id,))
    database.execute(_COUNT.format(name="delivered"), (status, now, delivery.webhook))


def _failed(
    database: SqlConnection,
    *,
    delivery: Delivery,
    status: int | None,
    problem: str,
    due: float | None,
    now: float,
) -> None:
    state = "dead" if due is None else "pending"
    database.execute(
        "UPDATE deliveries SET attempts = attempts + 1, state = ?, problem = ?, due = ? WHERE id = ?",
        (state, problem, due or now, delivery.id),
    )
    database.execute(_COUNT.format(name="failed"), (status, now, delivery.webhook))


def _deliveries(database: SqlConnection, *, webhook: str, state: str, limit: int) -> Sequence[Delivery]:
    query = f"SELECT {_COLUMNS} FROM deliveries WHERE webhook = ? AND state = ? ORDER BY id LIMIT ?"  # noqa: S608
    return [_delivery(row) for row in database.execute(query, (webhook, state, limit))]


def _replay(database: SqlConnection, *, webhook: str, number: int | None, now: float) -> int:
    query = "UPDATE deliveries SET state = 'pending', attempts = 0, due = ? WHERE webhook = ? AND state = 'dead'"
    if number is None:
        return database.execute(query, (now, webhook)).rowcount
    return database.execute(f"{query} AND id = ?", (now, webhook, number)).rowcount


def _statistics(database: SqlConnection) -> dict[str, DeliveryStatistics]:
    counts: dict[str, dict[str, int]] = {}
    for webhook, state, count in database.execute("SELECT webhook, state, count(*) FROM deliveries GROUP BY 1, 2"):
        counts.setdefault(webhook, {})[state] = count
    rows = database.execute("SELECT id, delivered, failed, last_status, last_at FROM webhooks")
    return {
        number: DeliveryStatistics(
            delivered=delivered,
            failed=failed,
            pending=counts.get(number, {}).get("pending", 0),
            dead=counts.get(number, {}).get("dead", 0),
            last_status=status,
            last_at=at,
        )
        for number, delivered, failed, status, at in rows
    }


def _delivery(row: tuple[Any, ...]) -> Delivery:
    number, webhook, event_id, task, body, attempts, state, problem, due, created = row
    return Delivery(
        id=number,
        webhook=webhook,
        event_id=event_id,
        task=task,
        body=body,
        attempts=attempts,
        state=state,
        problem=problem,
        due=due,
        created=created,
    )


_NEXT = f"""
    SELECT {_COLUMNS} FROM deliveries AS this WHERE webhook = :webhook AND state = 'pending' AND due <= :now
    AND NOT EXISTS (
        SELECT 1 FROM deliveries AS earlier WHERE earlier.webhook = this.webhook AND earlier.task = this.task
        AND this.task <> '' AND earlier.state = 'pending' AND earlier.id < this.id
    ) ORDER BY id LIMIT 1
"""  # noqa: S608
_MOVE = """
    INSERT INTO webhook_cursors (source, place) VALUES (?, ?)
    ON CONFLICT (source) DO UPDATE SET place = excluded.place
"""
_COUNT = "UPDATE webhooks SET {name} = {name} + 1, last_status = ?, last_at = ? WHERE id = ?"
