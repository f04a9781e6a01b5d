"""How does a caller of one era use a server of the other? What the server wants to know is asked in the caller's way.

In the modern era a server answers with questions and is called again with their answers; a caller of the legacy era
is asked them one by one, in the middle of the call.
"""

from collections.abc import Awaitable, Collection, Mapping
from typing import Any

from toolreeve.core.deadline import Deadline, thought
from toolreeve.core.mcp import Era, McpPeer, PeerError
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import RemoteError

MOST_ROUNDS = 16
MOST_QUESTIONS = 32
_INTERNAL = -32603
_KNOWN = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})


async def ask(
    session: UpstreamSession,
    method: str,
    params: Mapping[str, Any],
    peer: McpPeer | None,
    deadline: Deadline | None = None,
) -> dict[str, Any]:
    """The server's last word on a request; `deadline` is the call's. Raises RemoteError, ServerAway."""
    if session.era is Era.LEGACY or peer is None:
        return await session.request(method, params, peer=peer, deadline=deadline)
    if peer.era is Era.MODERN:
        return await session.request(method, _repeated(params, peer.responses, peer.state), peer=peer)
    return await _drive(session, method, params, peer, () if deadline is None else (deadline,))


async def _drive(
    session: UpstreamSession, method: str, params: Mapping[str, Any], peer: McpPeer, deadlines: Collection[Deadline]
) -> dict[str, Any]:
    sent = params
    for _ in range(MOST_ROUNDS):
        result = await session.request(method, sent, peer=peer)
        if result.get("resultType") != "input_required":
            return result
        sent = _repeated(
            params, await _answers(result.get("inputRequests"), peer, deadlines), result.get("requestState")
        )
    raise RemoteError(_INTERNAL, f"the server still asks back after {MOST_ROUNDS} rounds")


def _repeated(params: Mapping[str, Any], responses: Mapping[str, Any] | None, state: Any) -> Mapping[str, Any]:
    """The same request with what the server wants to see again."""
    if responses is None and state is None:
        return params
    added: dict[str, Any] = {} if responses is None else {"inputResponses": responses}
    return {**params, **added} if state is None else {**params, **added, "requestState": state}


async def _answers(questions: Any, peer: McpPeer, deadlines: Collection[Deadline]) -> dict[str, Any]:
    if questions is None:
        return {}
    if not isinstance(questions, dict) or len(questions) > MOST_QUESTIONS:
        raise RemoteError(_INTERNAL, f"the server asks back what is no list of at most {MOST_QUESTIONS} questions")
    return {name: await _answer(question, peer, deadlines) for name, question in questions.items()}


async def _answer(question: Any, peer: McpPeer, deadlines: Collection[Deadline]) -> dict[str, Any]:
    method = question.get("method") if isinstance(question, dict) else None
    if not isinstance(method, str) or method not in _KNOWN:
        raise RemoteError(_INTERNAL, f"the server asks back {ascii(method)[:100]}, which nobody can answer")
    params = question.get("params")
    asking = peer.request(method, params if isinstance(params, dict) else {})
    if method == "elicitation/create":
        return await _chosen(asking, deadlines)
    try:
        return await asking
    except PeerError as problem:
        raise RemoteError(problem.code, problem.message, problem.data) from None


async def _chosen(asking: Awaitable[dict[str, Any]], deadlines: Collection[Deadline]) -> dict[str, Any]:
    """Who cannot be asked and who does not answer has cancelled."""
    try:
        return await thought(asking, deadlines)
    except (PeerError, TimeoutError):
        return {"action": "cancel"}
