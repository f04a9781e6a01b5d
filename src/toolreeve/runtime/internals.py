"""Parts of a runtime that doors use beside calls.

What runs a call is not among them: doors have `Toolreeve.run` for that.
"""

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.core.call import new_id
from toolreeve.core.errors import ToolError
from toolreeve.record.journal import GOVERNOR
from toolreeve.runtime.calls_in_flight import CallsInFlight

if TYPE_CHECKING:
    from toolreeve.approval.request import Approval
    from toolreeve.config import Configuration
    from toolreeve.core.action import Action
    from toolreeve.core.verdict import Verdict
    from toolreeve.execution.workers.registry import WorkerList
    from toolreeve.runtime.assembly import Assembly
    from toolreeve.runtime.policy_review import PolicyReview
    from toolreeve.upstream.server_spec import ServerSpec
    from toolreeve.upstream.tools.pins import Pins
    from toolreeve.upstream.transports.connect import Authorize
    from toolreeve.upstream.transports.transport import Transport


class Internals:
    """`Toolreeve.internals`. Not part of the public interface: it may change with every version."""

    def __init__(self, parts: "Assembly", configuration: "Configuration", calls: CallsInFlight) -> None:
        self._parts = parts
        self._configuration = configuration
        self.calls = calls
        self.closers: list[Callable[[], Awaitable[None]]] = []
        """Called when the runtime closes, before its parts are."""
        self.on_credentials: list[Callable[[Collection[str]], None]] = []
        """Called by a server when other credentials are accepted, with the ids of all that are."""
        self.events = parts.events
        self.files = parts.files
        self.flow = parts.flow.sessions
        self.http = parts.http
        self.journal = parts.journal
        self.policy = parts.policy
        self.redact = parts.redactor.text
        self.store = parts.store
        self.undo = parts.undo

    @property
    def pins(self) -> "Pins":
        """The tools of MCP servers as first seen, and which have changed since."""
        return self._parts.upstream.pins

    async def fleet(self) -> "WorkerList | None":
        """The workers of this gateway; None if it has none. Raises ToolError(WORKER_UNAVAILABLE)."""
        if self._parts.remote is None:
            return None
        from toolreeve.execution.workers.registry import read_fleet

        return await read_fleet(await self._parts.remote.connect(), self._parts.remote.pools.names)

    async def unready(self) -> list[str]:
        """The parts that calls need and that do not work now."""
        found = [] if self.store.healthy else ["record"]
        if self._parts.remote is not None:
            try:
                link = await self._parts.remote.connect()
            except ToolError:
                return [*found, "workers"]
            found += [] if link.client.is_connected else ["workers"]
        return found

    async def spend(self, dollars: float) -> bool:
        """Charge the budget for what is no tool call, such as a model's turn. False once the limit is exceeded; it is
        counted even then, because it has been spent."""
        limit = self._parts.policy.budget
        if limit is None:
            return True
        await self._parts.budget.reserve(limit.scope, dollars, None)
        limit.spent = await self._parts.budget.spent(limit.scope)
        return limit.spent <= limit.limit

    async def review_policy(self) -> "PolicyReview":
        """The policy over recorded calls: what another would decide, and rules for what is approved often."""
        from toolreeve.runtime.policy_review import PolicyReview

        await self._parts.pipeline.find_confinements()
        return PolicyReview(self._configuration, self._parts.audit, self.policy().confinements)

    async def log_in(self, server: str, authorize: "Authorize") -> bool:
        """Log in to a remote server; `authorize` gets the URL for the user. Raises ServerUnavailable, ValueError."""
        from toolreeve.upstream.oauth.account import login

        upstream = self._parts.upstream.pool.upstream(server)
        state = Path(self._configuration.settings.state.dir)
        granted = await login(upstream.spec, http=self.http, state=state, authorize=authorize)
        await upstream.supervisor.restart()
        return granted

    async def ask(self, action: "Action", verdict: "Verdict") -> "Approval":
        """Ask about a call that its caller makes itself. Raises ToolError unless it is approved."""
        return await self._parts.approval.broker.settle(action, verdict, version=self.policy().version)

    def connect(self, program: "ServerSpec") -> "Transport":
        """The pipes of a program in its sandbox, not started yet. Raises ServerUnavailable."""
        self._parts.redactor.learn(program.secret_values)
        return self._parts.upstream.connect(program)

    @property
    def max_reviews(self) -> int:
        """How often an agent may be asked to mend its answer (`output_settings.max_iterations` of your governors)."""
        governors = self._parts.approval.governors
        return 0 if governors is None else governors.settings.max_iterations

    async def review_output(self, session: str, text: str, iteration: int = 0) -> tuple[str, str]:
        """Why your output governors refuse an agent's answer, and what they want done; both empty if they do not.
        What they said is recorded."""
        governors = self._parts.approval.governors
        if governors is None or not governors.settings.output:
            return "", ""
        review = await governors.review_output(text, task=new_id(), session=session, iteration=iteration)
        await self.journal.note(GOVERNOR, review.to_dict())
        veto = review.rejected
        problem = "" if veto is None else f"refused by governor {veto.governor!r}: {'; '.join(veto.messages)}"
        return problem, review.follow_up
