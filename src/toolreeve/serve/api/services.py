"""What the endpoints use besides the runtime."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolreeve.approval.channels.inbox import InboxChannel
from toolreeve.core.errors import ToolreeveError
from toolreeve.serve.api.visibility import RecordView
from toolreeve.serve.tokens import Credential, Tokens

if TYPE_CHECKING:
    from toolreeve.record.recent_results import RecentResults
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.api.running import RunningCalls
    from toolreeve.serve.event_feed import EventFeed
    from toolreeve.serve.mcp.http import ToolViews
    from toolreeve.serve.protocol import HttpProtocol

Rows = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]


async def no_rows() -> Sequence[Mapping[str, Any]]:
    return ()


Change = Callable[[str, str], Awaitable[Sequence[str] | None]]
"""By the name of a client and the version that was shown: the files that were changed; None if it is another one now.
Raises ToolreeveError."""


async def no_change(client: str, version: str) -> Sequence[str] | None:  # noqa: ARG001
    raise ToolreeveError("this server changes no clients; run `toolreeve adopt` or `toolreeve hooks install`")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSetup:
    """What the command line knows of this machine: checks, MCP clients and their hooks, and how to change them."""

    doctor: Rows = no_rows
    clients: Rows = no_rows
    hooks: Rows = no_rows
    adopt: Change = no_change
    install: Change = no_change


@dataclass(slots=True)
class ChainState:
    """What the last verification of the record found; None before the first."""

    state: str | None = None
    verified_at: float | None = None
    broken_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    reeve: "Toolreeve"
    views: "ToolViews"
    tokens: Tokens
    feed: "EventFeed"
    running: "RunningCalls"
    now: Callable[[], float]
    results: "RecentResults"
    setup: LocalSetup = field(default_factory=LocalSetup)
    started: float = 0.0
    inbox: InboxChannel = field(default_factory=InboxChannel)
    tasks: set["asyncio.Task[Any]"] = field(default_factory=set)
    waiting: Counter[str] = field(default_factory=Counter)
    chain: ChainState = field(default_factory=ChainState)

    def view_of(self, credential: Credential) -> RecordView:
        """What of the record this credential may see."""
        return RecordView(credential, self.reeve.internals.files.root)

    async def count_waiting(self) -> None:
        """Count what waits, for the metrics."""
        found = (await self.reeve.internals.store.webhooks.statistics()).values()
        self.waiting["approvals"] = await self.reeve.approvals.count()
        self.waiting["deliveries"] = sum(each.pending for each in found)
        self.waiting["dead"] = sum(each.dead for each in found)

    async def refresh_tokens(self) -> None:
        """Accept what is stored now, and nothing else that was."""
        self.tokens.replace_stored(await self.reeve.internals.store.credentials.list(now=self.now()))

    async def revoke(self, number: str, connection: "HttpProtocol") -> bool:
        """Revoke a stored credential: its next request is refused, and what is open in its name ends. The request that
        revokes it, on this connection, is answered, even if it is its own."""
        connection.serving = None
        found = await self.reeve.internals.store.credentials.revoke(number)
        await self.refresh_tokens()
        return found is not None
