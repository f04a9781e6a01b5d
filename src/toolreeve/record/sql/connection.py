"""Connection and engine that the SQL tables work on.

The tables are written once, in SQL that both databases understand: `?` and `:name` are placeholders. A transaction that
reads before it writes takes a `lock` first, or decides in the statement that writes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from toolreeve.record.chain import Line

T = TypeVar("T")
Values = Sequence[Any] | Mapping[str, Any]


class Rows(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    labels: str
    """An aggregate of this database: the labels of the audit records under a condition, as text."""

    def execute(self, statement: str, values: Values = ..., /) -> Rows: ...

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> Any: ...

    def lock(self, name: str) -> None:
        """Until this transaction ends, every other that takes the same lock waits."""

    def announce(self, channel: str) -> None:
        """Once this transaction is committed, wake the processes that listen to `channel`."""


class TableEngine(Protocol):
    @property
    def has_begun(self) -> bool:
        """Whether there is a database yet."""
        ...

    async def transact(self, work: Callable[[SqlConnection], T]) -> T:
        """Run `work` in one transaction; if it raises, nothing of it is kept."""
        ...

    async def read(self, query: Callable[[SqlConnection], T]) -> T: ...

    def read_blocking(self, query: Callable[[SqlConnection], T]) -> T:
        """As `read`, in the caller's thread: never on an event loop."""
        ...

    def write_lines(self, connection: SqlConnection, lines: Sequence[Line]) -> None:
        """Write lines to the record within the caller's transaction, which then stands or falls with them."""

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """Call `wake`, from any thread, when another process announces `channel`."""


def placeholders(count: int) -> str:
    return ", ".join("?" * count)
