"""Store: the record's tables in one SQLite file.

Each method of a table is one transaction. Statements, connections and errors of SQLite stay in `record.sqlite`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolreeve.record.chain import ChainStore
from toolreeve.record.sqlite.audit import SqliteAudit
from toolreeve.record.sqlite.budget import SqliteBudget
from toolreeve.record.sqlite.chain import SqliteChain
from toolreeve.record.sqlite.changes import SqliteChanges
from toolreeve.record.sqlite.engine import CAPACITY, RETRY_DELAY, Engine

if TYPE_CHECKING:
    from toolreeve.record.sqlite.agent_runs import SqliteAgentRuns
    from toolreeve.record.sqlite.credentials import SqliteCredentials
    from toolreeve.record.sqlite.flow_facts import SqliteFlowFacts
    from toolreeve.record.sqlite.grants import SqliteGrants
    from toolreeve.record.sqlite.pending import SqlitePending
    from toolreeve.record.sqlite.pins import SqlitePins
    from toolreeve.record.sqlite.tasks import SqliteTasks
    from toolreeve.record.sqlite.webhooks import SqliteWebhooks

T = TypeVar("T")


class Store(Engine):
    """Tables that a plain call does not need are imported when they are asked for."""

    def __init__(
        self, path: Path, *, read_only: bool = False, capacity: int = CAPACITY, retry_delay: float = RETRY_DELAY
    ) -> None:
        super().__init__(path, read_only=read_only, capacity=capacity, retry_delay=retry_delay)
        self.audit = SqliteAudit(self)
        self.budget = SqliteBudget(self)
        self.changes = SqliteChanges(self)

    @property
    def agent_runs(self) -> "SqliteAgentRuns":
        from toolreeve.record.sqlite.agent_runs import SqliteAgentRuns

        return SqliteAgentRuns(self)

    @property
    def tasks(self) -> "SqliteTasks":
        from toolreeve.record.sqlite.tasks import SqliteTasks

        return SqliteTasks(self)

    @property
    def credentials(self) -> "SqliteCredentials":
        from toolreeve.record.sqlite.credentials import SqliteCredentials

        return SqliteCredentials(self)

    @property
    def pending(self) -> "SqlitePending":
        from toolreeve.record.sqlite.pending import SqlitePending

        return SqlitePending(self)

    @property
    def pins(self) -> "SqlitePins":
        from toolreeve.record.sqlite.pins import SqlitePins

        return SqlitePins(self)

    @property
    def webhooks(self) -> "SqliteWebhooks":
        from toolreeve.record.sqlite.webhooks import SqliteWebhooks

        return SqliteWebhooks(self)

    def grants(self, now: Callable[[], float]) -> "SqliteGrants":
        from toolreeve.record.sqlite.grants import SqliteGrants

        return SqliteGrants(self, now)

    def flow_facts(self, now: Callable[[], float]) -> "SqliteFlowFacts":
        from toolreeve.record.sqlite.flow_facts import SqliteFlowFacts

        return SqliteFlowFacts(self, now)

    async def change_chain(self, work: Callable[[ChainStore], T]) -> T:
        """Run `work` on the stored chain, in one transaction."""
        return await self.transact(lambda connection: work(SqliteChain(connection)))

    async def read_chain(self, query: Callable[[ChainStore], T]) -> T:
        return await self.read(lambda connection: query(SqliteChain(connection)))
