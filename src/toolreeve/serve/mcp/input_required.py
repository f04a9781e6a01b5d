"""`input_required` results: approvals and upstream questions across several requests.

In the modern era no request waits: its result is a question with a sealed state, and the client repeats the request
with both. What it brings is verified here and then takes the whole road again; nothing is ever allowed here.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.approval.answers import prior_answer
from toolreeve.approval.channels.peer import PeerChannel
from toolreeve.approval.pending import holder_of, read_call
from toolreeve.approval.request import Answer, Request, fingerprint
from toolreeve.core.call import ToolCall, new_id
from toolreeve.core.errors import ErrorCode
from toolreeve.core.mcp import Era
from toolreeve.core.peer import PriorAnswer, PriorApproval
from toolreeve.core.result import Failure, Meta, Success, ToolResult, new_result
from toolreeve.record.pending import PendingStore
from toolreeve.record.pending_table import ANSWERED, PENDING, USED, PendingRow
from toolreeve.rpc.errors import INVALID_PARAMS
from toolreeve.serve.mcp.elicitation import METHOD, elicitation, read_answer
from toolreeve.serve.mcp.protocol import Params, WireError
from toolreeve.serve.mcp.request_context import RequestContext
from toolreeve.serve.mcp.request_state import LIFETIME, BadState, RequestState, Seal, check_keys, load_keys

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.runtime.toolreeve import Toolreeve

KEY = "approval"
"""The key of our question in `inputRequests`. It never appears beside questions of an upstream server."""
WAIT = "wait_for_approval"
MAX_WAIT = 50.0
DEFAULT_WAIT = 25.0
REFUSED = "Invalid or expired requestState"
NONCE_LIFETIME = 2 * LIFETIME
"""Seconds that a used state is remembered: longer than it is valid, even with some clock skew."""

WAIT_TOOL: Mapping[str, Any] = {
    "name": WAIT,
    "title": "Wait for an approval",
    "description": (
        "Wait until a person has answered a call that ended with E_APPROVAL_PENDING. Once they have allowed it, the"
        " call runs, and its result is the answer here. If they have not answered within the timeout, call this again."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "approval_id": {"type": "string", "description": "The approval_id of the pending call."},
            "timeout": {
                "type": "number",
                "minimum": 0,
                "maximum": MAX_WAIT,
                "description": f"Seconds to wait, {DEFAULT_WAIT:g} if not given.",
            },
        },
        "required": ["approval_id"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True},
}


def configured_keys(configuration: "Configuration") -> list[bytes]:
    """Raises ConfigError for an invalid one."""
    revealed = [configuration.reveal(key, key="mcp.state_key") for key in configuration.settings.mcp.state_key]
    return check_keys(revealed, source="mcp.state_key")


def new_input_required(reeve: "Toolreeve") -> "InputRequired":
    """With the configured keys. Raises ConfigError for an invalid one."""
    keys = configured_keys(reeve.configuration)
    directory = Path(reeve.configuration.settings.state.dir)
    return InputRequired(
        lambda: Seal(keys or load_keys(directory), now=time.time), reeve.approvals.store, now=time.time
    )


class InputRequired:
    """`seal` is called when it is first needed: not every door has clients of the modern era."""

    def __init__(self, seal: Callable[[], Seal], approvals: PendingStore, *, now: Callable[[], float]) -> None:
        self._new_seal = seal
        self._approvals = approvals
        self._now = now
        self._made: Seal | None = None

    @property
    def _seal(self) -> Seal:
        if self._made is None:
            self._made = self._new_seal()
        return self._made

    async def read_retry(self, method: str, params: Params, context: RequestContext) -> None:
        """Store the responses, state and decision of a repeated request in `context`.

        Raises WireError for a state that is forged, expired, used, or another holder's.
        """
        if context.era is not Era.MODERN:
            return
        responses = _responses(params)
        token = params.get("requestState")
        if token is None:
            context.responses = responses
            return
        try:
            state = self._seal.open(token, holder=_holder(context), request=_digest(method, params))
        except BadState:
            raise WireError(INVALID_PARAMS, REFUSED) from None
        if state.question and responses is not None and context.client.inbox is not None:
            await self._approvals.wait(state.question, timeout=DEFAULT_WAIT)
            responses = None  # that the page was opened is no answer: the answer is in the store
        decision = _decision(state, responses, seconds=self._now() - state.asked)
        if decision is not None and not await self._approvals.consume(state.nonce, keep=NONCE_LIFETIME):
            raise WireError(INVALID_PARAMS, REFUSED)
        context.decision = decision
        if state.session:  # the client may have reconnected since
            context.client.session = state.session
        if not state.question:
            context.responses = responses
            context.state = state.inner

    def required(
        self, method: str, params: Params, context: RequestContext, result: ToolResult
    ) -> dict[str, Any] | None:
        """The `input_required` result, if the client must be asked before the call can continue; else None."""
        if context.era is not Era.MODERN:
            return None
        asked = context.question
        if asked is not None and result.error is not None and result.error.code is ErrorCode.APPROVAL_PENDING:
            return self._question(method, params, context, asked)
        raw = result.meta.raw
        if raw is None or raw.get("resultType") != "input_required":
            return None
        return self._wrap_upstream(method, params, context, result)

    def _question(self, method: str, params: Params, context: RequestContext, asked: Request) -> dict[str, Any]:
        state = RequestState(
            holder=_holder(context),
            request=_digest(method, params),
            binding=asked.binding,
            question=asked.id,
            asked=self._now(),
            session=context.session,
        )
        return {
            "resultType": "input_required",
            "inputRequests": {KEY: {"method": METHOD, "params": elicitation(asked, context.client.inbox)}},
            "requestState": self._seal.close(state),
        }

    def _wrap_upstream(
        self, method: str, params: Params, context: RequestContext, result: ToolResult
    ) -> dict[str, Any]:
        """The upstream server's question, with its state inside ours; a given approval is not asked for again."""
        meta = result.meta
        raw = dict(meta.raw or {})
        inner = raw.get("requestState")
        if inner is None and not meta.binding:
            return raw
        state = RequestState(
            holder=_holder(context),
            request=_digest(method, params),
            binding=meta.binding,
            approved_by=meta.approved_by or "",
            inner=inner if isinstance(inner, str) else None,
            session=context.session,
        )
        return raw | {"requestState": self._seal.close(state)}

    def offers_wait(self, context: RequestContext) -> bool:
        """Whether the client needs `wait_for_approval`: one that can show forms is asked itself."""
        return not context.can_ask

    async def wait(self, arguments: Any, context: RequestContext) -> ToolCall | ToolResult:
        """The call to run once a person has decided, or the result to return instead.

        The call is returned once, to the principal that asked; `context` then carries the decision, and a denial is
        reported by the road like any other.
        """
        match arguments:
            case {"approval_id": str(number), **rest} if number and set(rest) <= {"timeout"}:
                seconds = rest.get("timeout", DEFAULT_WAIT)
            case _:
                return _failed(ErrorCode.INVALID_PARAMS, "expected {approval_id: string, timeout?: seconds}")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= MAX_WAIT:
            return _failed(ErrorCode.INVALID_PARAMS, f"timeout must be a number from 0 to {MAX_WAIT:g}")
        return await self._await(number, float(seconds), context)

    async def _await(self, number: str, seconds: float, context: RequestContext) -> ToolCall | ToolResult:
        holder = _holder(context)
        pending = await self._approvals.find(number)
        if pending is None or pending.id != number or pending.holder != holder or not _may_see(pending, context):
            return _failed(ErrorCode.PERMISSION, f"no approval {number!r} is pending for this caller")
        if pending.state == USED and context.decision is not None and context.decision.binding == pending.binding:
            return _call_for(context, pending)  # already started: continue with the input that its tool requested
        pending = await self._approvals.wait(number, timeout=seconds) or pending
        if pending.state in ANSWERED and not pending.question["hidden"]:
            claimed = await self._approvals.claim(number, holder=holder)
            if claimed is not None:
                return _resumed(claimed, context)
            pending = await self._approvals.find(number) or pending
        return _pending_result(pending)


def _resumed(pending: PendingRow, context: RequestContext) -> ToolCall:
    context.decision = prior_answer(pending, pending.binding)
    return _call_for(context, pending)


def _call_for(context: RequestContext, pending: PendingRow) -> ToolCall:
    call = read_call(pending.question)
    call.peer = context
    call.client = context.client_name
    return call


def _pending_result(pending: PendingRow) -> ToolResult:
    data = {"status": pending.state, "approval_id": pending.id, "expires": pending.expires}
    if pending.state == PENDING:
        return _result(
            Success(data, f"Nobody has answered {pending.id!r} yet: call {WAIT} again. Nothing has taken effect.")
        )
    if pending.state in ANSWERED:  # not a tool call: only the client can repeat the request
        return _result(Success(data, f"{pending.id!r} was {pending.state}: make the same request again."))
    if pending.answer is not None:
        message = f"the answer to {pending.id!r} has already been used: see the result of its call, or make a new call"
        return _failed(ErrorCode.APPROVAL_DENIED, message, data)
    return _failed(
        ErrorCode.APPROVAL_TIMEOUT, f"nobody answered {pending.id!r} in time; nothing has taken effect", data
    )


def _failed(code: ErrorCode, message: str, data: Mapping[str, Any] | None = None) -> ToolResult:
    return _result(Failure(code, message, data=data))


def _result(outcome: Success | Failure) -> ToolResult:
    return new_result(outcome, Meta(call_id=new_id(), tool=WAIT, session=""))


def _decision(
    state: RequestState, responses: Mapping[str, Any] | None, *, seconds: float
) -> PriorApproval | PriorAnswer | None:
    """The decision in the state and the responses; None if there is none."""
    if state.approved_by and state.binding:
        return PriorApproval(binding=state.binding, by=state.approved_by)
    if not state.question or responses is None or KEY not in responses:
        return None
    return PriorAnswer(
        binding=state.binding,
        question=state.question,
        asked=state.asked,
        read=partial(_read_elicitation, responses[KEY], seconds),
        channel=PeerChannel.name,
    )


def _read_elicitation(result: Any, seconds: float, request: Request) -> Answer:
    return read_answer(request, result, seconds=seconds)


def _responses(params: Params) -> Mapping[str, Any] | None:
    responses = params.get("inputResponses")
    if responses is not None and not isinstance(responses, Mapping):
        raise WireError(INVALID_PARAMS, "params.inputResponses must be an object")
    return responses


def _holder(context: RequestContext) -> str:
    return holder_of(context.principal, context.credential)


def _may_see(pending: PendingRow, context: RequestContext) -> bool:
    """Whether the client may know the tool. Checked before the answer is claimed, which works once."""
    return bool(pending.question["hidden"]) or context.view.find(pending.question["tool"]) is not None


def _digest(method: str, params: Params) -> str:
    """Identifies the request, without the fields that accompany it."""
    beside = ("_meta", "inputResponses", "requestState")
    try:
        return fingerprint(method, {key: value for key, value in params.items() if key not in beside})
    except RecursionError:
        raise WireError(INVALID_PARAMS, "params are nested too deeply") from None
