"""Approval channel to the caller, while its call waits."""

from toolreeve.approval.request import Answer, Request
from toolreeve.core.peer import Peer, PeerUnavailable


class PeerChannel:
    """One per call. When `ask` is cancelled, the door withdraws the question."""

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
        return answer
