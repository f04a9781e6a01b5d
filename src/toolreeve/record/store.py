"""Store: the record's tables in one database, SQLite or PostgreSQL.

Each method of a table is one transaction. Connections and errors of a database stay in its package.
"""

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.core.errors import ToolreeveError
from toolreeve.record.engine import CAPACITY, RETRY_DELAY, Engine
from toolreeve.record.sqlite.engine import SqliteEngine

if TYPE_CHECKING:
    from toolreeve.record.audit import AuditTable
    from toolreeve.record.blobs import Blobs
    from toolreeve.record.postgres.shared_state import PostgresSharedState
    from toolreeve.record.sql.agent_runs import SqlAgentRuns
    from toolreeve.record.sql.budget import SqlBudget
    from toolreeve.record.sql.changes import SqlChanges
    from toolreeve.record.sql.credentials import SqlCredentials
    from toolreeve.record.sql.flow_facts import SqlFlowFacts
    from toolreeve.record.sql.grants import SqlGrants
    from toolreeve.record.sql.pending import SqlPending
    from toolreeve.record.sql.pins import SqlPins
    from toolreeve.record.sql.tasks import SqlTasks
    from toolreeve.record.sql.webhooks import SqlWebhooks
    from toolreeve.record.sqlite.audit import SqliteAudit
    from toolreeve.record.undo import ContentStore


class RecordStore(Engine):
    """Tables are imported when they are asked for."""

    @property
    @abstractmethod
    def audit(self) -> "AuditTable": ...

    @abstractmethod
    def contents(self, now: Callable[[], float]) -> "ContentStore":
        """The former contents of changed files; `now` is wall-clock time."""

    @property
    def shared_state(self) -> "PostgresSharedState | None":
        """What several gateways change; None where one machine has the database to itself."""
        return None

    @property
    def budget(self) -> "SqlBudget":
        from toolreeve.record.sql.budget import SqlBudget

        return SqlBudget(self)

    @property
    def changes(self) -> "SqlChanges":
        from toolreeve.record.sql.changes import SqlChanges

        return SqlChanges(self)

    @property
    def agent_runs(self) -> "SqlAgentRuns":
        from toolreeve.record.sql.agent_runs import SqlAgentRuns

        return SqlAgentRuns(self)

    @property
    def tasks(self) -> "SqlTasks":
        from toolreeve.record.sql.tasks import SqlTasks

        return SqlTasks(self)

    @property
    def credentials(self) -> "SqlCredentials":
        from toolreeve.record.sql.credentials import SqlCredentials

        return SqlCredentials(self)

    @property
    def pending(self) -> "SqlPending":
        from toolreeve.record.sql.pending import SqlPending

        return SqlPending(self)

    @property
    def pins(self) -> "SqlPins":
        from toolreeve.record.sql.pins import SqlPins

        return SqlPins(self)

    @property
    def webhooks(self) -> "SqlWebhooks":
        from toolreeve.record.sql.webhooks import SqlWebhooks

        return SqlWebhooks(self)

    def grants(self, now: Callable[[], float]) -> "SqlGrants":
        from toolreeve.record.sql.grants import SqlGrants

        return SqlGrants(self, now)

    def flow_facts(self, now: Callable[[], float]) -> "SqlFlowFacts":
        from toolreeve.record.sql.flow_facts import SqlFlowFacts

        return SqlFlowFacts(self, now)


class Store(SqliteEngine, RecordStore):
    """The tables in a SQLite file, and contents in a directory beside it."""

    @property
    def audit(self) -> "SqliteAudit":
        from toolreeve.record.sqlite.audit import SqliteAudit

        return SqliteAudit(self)

    def contents(self, now: Callable[[], float]) -> "Blobs":
        from toolreeve.record.blobs import Blobs

        return Blobs(self.path.parent / "undo", now)


def open_store(
    path: Path, url: str = "", *, read_only: bool = False, capacity: int = CAPACITY, retry_delay: float = RETRY_DELAY
) -> RecordStore:
    """The store at `url`, by default the SQLite file at `path`. Start it before use. Raises ToolreeveError for
    an invalid `url`, or if its extra is missing."""
    if not url:
        return Store(path, read_only=read_only, capacity=capacity, retry_delay=retry_delay)
    if not url.startswith(("postgresql://", "postgres://")):
        raise ToolreeveError("state.url is not a PostgreSQL URL: it does not begin with postgresql://")
    try:
        from toolreeve.record.postgres.store import PostgresStore
    except ImportError as problem:
        raise ToolreeveError(
            f"state.url needs the extra `postgres`: pip install 'toolreeve[postgres]' ({problem})"
        ) from None

    return PostgresStore(url, path.parent, read_only=read_only, capacity=capacity, retry_delay=retry_delay)
