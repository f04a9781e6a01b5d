"""Approval channel to the client that made the call, while the call waits."""

from toolreeve.approval.elicitation import METHOD, elicitation, read_answer
from toolreeve.approval.request import Answer, Request
from toolreeve.core.peer import Peer, PeerError


class PeerChannel:
    """One per call. When `ask` is cancelled, the connection cancels the request at the client."""

    name = "client"

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def available(self) -> bool:
        return True

    async def ask(self, request: Request) -> Answer:
        try:
            result = await self._peer.request(METHOD, elicitation(request))
        except PeerError as problem:
            raise RuntimeError(f"the client could not be asked: {problem.message}") from None
        return read_answer(request, result)
