"""Store in PostgreSQL: the record's tables, shared by any number of gateways."""

from collections.abc import Callable

from toolreeve.record.postgres.audit import PostgresAudit
from toolreeve.record.postgres.contents import PostgresContents
from toolreeve.record.postgres.engine import PostgresEngine
from toolreeve.record.postgres.shared_state import PostgresSharedState
from toolreeve.record.store import RecordStore


class PostgresStore(PostgresEngine, RecordStore):
    @property
    def audit(self) -> PostgresAudit:
        return PostgresAudit(self)

    @property
    def shared_state(self) -> PostgresSharedState:
        return PostgresSharedState(self)

    def contents(self, now: Callable[[], float]) -> PostgresContents:  # noqa: ARG002 - the database has a clock
        return PostgresContents(self)
