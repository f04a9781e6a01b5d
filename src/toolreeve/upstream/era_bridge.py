"""Requests across protocol eras: translates a server's questions for its caller.

A modern server answers with questions and is called again with the answers; a legacy caller gets them one by one, as
requests in the middle of the call.
"""

from collections.abc import Awaitable, Collection, Mapping
from typing import Any

from toolreeve.core.deadline import Deadline, await_answer
from toolreeve.core.mcp import Era, McpPeer, PeerError
from toolreeve.rpc.errors import INTERNAL_ERROR
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import RemoteError

MAX_ROUNDS = 16
MAX_QUESTIONS = 32
_KNOWN = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})


async def send_request(
    session: UpstreamSession,
    method: str,
    params: Mapping[str, Any],
    peer: McpPeer | None,
    deadline: Deadline | None = None,
) -> dict[str, Any]:
    """The server's final result; `deadline` is the call's. Raises RemoteError, ServerUnavailable."""
    if session.era is Era.LEGACY or peer is None:
        return await session.request(method, params, peer=peer, deadline=deadline)
    if peer.era is Era.MODERN:
        return await session.request(method, _with_answers(params, peer.responses, peer.state), peer=peer)
    return await _ask_legacy_caller(session, method, params, peer, () if deadline is None else (deadline,))


async def _ask_legacy_caller(
    session: UpstreamSession, method: str, params: Mapping[str, Any], peer: McpPeer, deadlines: Collection[Deadline]
) -> dict[str, Any]:
    sent = params
    for _ in range(MAX_ROUNDS):
        result = await session.request(method, sent, peer=peer)
        if result.get("resultType") != "input_required":
            return result
        answers = await _answers(result.get("inputRequests"), peer, deadlines)
        sent = _with_answers(params, answers, result.get("requestState"))
    raise RemoteError(INTERNAL_ERROR, f"the server still asks for input after {MAX_ROUNDS} rounds")


def _with_answers(params: Mapping[str, Any], responses: Mapping[str, Any] | None, state: Any) -> Mapping[str, Any]:
    """The same request with the answers and the state that the server expects back."""
    added: dict[str, Any] = {}
    if responses is not None:
        added["inputResponses"] = responses
    if state is not None:
        added["requestState"] = state
    return {**params, **added} if added else params


async def _answers(questions: Any, peer: McpPeer, deadlines: Collection[Deadline]) -> dict[str, Any]:
    if questions is None:
        return {}
    if not isinstance(questions, dict) or len(questions) > MAX_QUESTIONS:
        raise RemoteError(
            INTERNAL_ERROR, f"the server's inputRequests are not an object of at most {MAX_QUESTIONS} requests"
        )
    return {name: await _answer(question, peer, deadlines) for name, question in questions.items()}


async def _answer(question: Any, peer: McpPeer, deadlines: Collection[Deadline]) -> dict[str, Any]:
    method = question.get("method") if isinstance(question, dict) else None
    if not isinstance(method, str) or method not in _KNOWN:
        raise RemoteError(INTERNAL_ERROR, f"the server asks for {ascii(method)[:100]}, which no client can answer")
    params = question.get("params")
    request = peer.request(method, params if isinstance(params, dict) else {})
    if method == "elicitation/create":
        return await _elicit(request, deadlines)
    try:
        return await request
    except PeerError as problem:
        raise RemoteError(problem.code, problem.message, problem.data) from None


async def _elicit(request: Awaitable[dict[str, Any]], deadlines: Collection[Deadline]) -> dict[str, Any]:
    """A caller that cannot be asked or does not answer counts as a cancel."""
    try:
        return await await_answer(request, deadlines)
    except (PeerError, TimeoutError):
        return {"action": "cancel"}
