"""What does a server want from whoever called it? It may ask the person, the model or the roots behind a call.

A question goes to the caller for whom the server works and to nobody else: where two callers could be meant, to none.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.deadline import Deadline, thought
from toolreeve.core.mcp import Era, McpPeer, PeerError
from toolreeve.upstream.session.request import PendingRequest

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
_MOST_AT_ONCE = 32
_NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}

Reply = Callable[[dict[str, Any]], None]


class ServerRequests:
    """The questions of one session's server. `flights` are the requests that it works on at the moment."""

    def __init__(self, flights: Mapping[int, PendingRequest], roots: Sequence[Mapping[str, Any]], reply: Reply) -> None:
        self._flights, self._roots, self._reply = flights, roots, reply
        self._open: dict[str | int, tuple[asyncio.Task[None], str]] = {}

    def ask(self, number: str | int, method: str, params: Mapping[str, Any]) -> None:
        """Answered at once where no one has to be asked."""
        if method == "ping":
            self._answer(number, {})
        elif method not in _NEEDED:
            self._refuse(number, PeerError(METHOD_NOT_FOUND, f"this client does not know {method!r}"))
        else:
            self._pass_on(number, method, params)

    def _pass_on(self, number: str | int, method: str, params: Mapping[str, Any]) -> None:
        callers = self._callers()
        if len({None if peer is None else peer.session for peer in callers}) > 1:
            problem = (
                "several callers are being served on this connection, and the question does not say whom it is for"
            )
            self._refuse(number, PeerError(INTERNAL_ERROR, problem))
            return
        peer = callers[-1] if callers else None
        if peer is None or not _can_be_asked(peer, method):
            self._answer_for_nobody(number, method)
        elif len(self._open) >= _MOST_AT_ONCE or number in self._open:
            self._refuse(number, PeerError(INTERNAL_ERROR, "too many questions are open"))
        else:
            self._open[number] = (asyncio.create_task(self._carry(number, method, params, peer)), peer.session)

    def _callers(self) -> list[McpPeer | None]:
        return [flight.peer for flight in self._flights.values() if flight.works]

    def _answer_for_nobody(self, number: str | int, method: str) -> None:
        if method == "elicitation/create":
            self._answer(number, {"action": "cancel"})
        elif method == "roots/list":
            self._answer(number, {"roots": [dict(root) for root in self._roots]})
        else:
            self._refuse(number, PeerError(METHOD_NOT_FOUND, "the caller has no model that could be asked"))

    async def _carry(self, number: str | int, method: str, params: Mapping[str, Any], peer: McpPeer) -> None:
        asking = peer.request(method, params)
        try:
            person = method == "elicitation/create"
            answer = await (thought(asking, self._deadlines(peer)) if person else asking)
            self._answer(number, answer)
        except PeerError as problem:
            self._refuse(number, problem)
        except TimeoutError:
            self._answer_for_nobody(number, method)
        finally:
            self._open.pop(number, None)

    def _deadlines(self, peer: McpPeer) -> list[Deadline]:
        """Of all that is done for whoever is asked: the question does not say which of it waits for the answer."""
        served = [flight for flight in self._flights.values() if flight.peer and flight.peer.session == peer.session]
        return [flight.deadline for flight in served if flight.deadline is not None]

    def withdraw(self, number: Any) -> None:
        """The server no longer wants to know."""
        if isinstance(number, (str, int)) and number in self._open:
            self._open[number][0].cancel()

    def landed(self) -> None:
        """Whoever is no longer worked for is no longer asked either."""
        if self._open:
            served = {peer.session for peer in self._callers() if peer is not None}
            for task, session in self._open.values():
                if session not in served:
                    task.cancel()

    def close(self) -> None:
        for task, _ in self._open.values():
            task.cancel()

    def _answer(self, number: str | int, result: Mapping[str, Any]) -> None:
        self._reply({"jsonrpc": "2.0", "id": number, "result": result})

    def _refuse(self, number: str | int, problem: PeerError) -> None:
        self._reply({"jsonrpc": "2.0", "id": number, "error": problem.to_dict()})


def _can_be_asked(peer: McpPeer, method: str) -> bool:
    return peer.era is Era.LEGACY and _NEEDED[method] in peer.capabilities
