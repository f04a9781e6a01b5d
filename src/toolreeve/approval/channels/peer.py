"""Approval channel to the caller, while its call waits."""

from dataclasses import replace

from toolreeve.approval.request import Answer, Request
from toolreeve.core.peer import Peer, PeerUnavailable


class PeerChannel:
    """One per call. When `ask` is cancelled, the door withdraws the question. Its answers are those of the person at
    the client, who is the caller's own principal."""

    name = "client"

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def available(self) -> bool:
        return True

    async def ask(self, request: Request) -> Answer:
        try:
            answer: Answer = await self._peer.ask(request)
        except PeerUnavailable as problem:
            raise RuntimeError(f"the client could not be asked: {problem}") from None
        if not isinstance(answer, Answer) or answer.by:
            return answer
        return replace(answer, by=f"{user_of(request)} via {self.name}", approver=request.principal.user)


def user_of(request: Request) -> str:
    """The person at the client, whose name is not known."""
    return f"the user of {request.client}" if request.client else "the client's user"
