"""Wire format: subjects, signed calls, and results in numbered pieces.

Everything a worker relies on is under the signature: pool and kind of delivery (the subject), call, times, reply
subject and body, with the decision of the policy. JSON is Python's own, which keeps every integer and text exactly.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.call import Principal, RecordScope, Role, ToolCall
from toolreeve.core.context import ProgramBounds
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Meta, Output
from toolreeve.core.tool import ToolSpec
from toolreeve.core.trial import Confinement
from toolreeve.execution.workers.signing import PoolKey, is_signed

PROTOCOL = "1"
PREFIX = "toolreeve"
PIECE = 512 * 1024
MAX_PIECES = 256
CLOCK_TOLERANCE = 30.0
ONCE = "once"
REPEAT = "repeat"
DELIVERIES = {ONCE: 1, REPEAT: 3}
"""By kind: how often a call is delivered."""
REGISTRY = "toolreeve_workers"
LIMITS = "toolreeve_limits"
_SIGNED = ("Toolreeve-Protocol", "Toolreeve-Call", "Toolreeve-Issued", "Toolreeve-Expires", "Toolreeve-Reply")
_SIGNATURE = "Toolreeve-Signature"


def call_subject(kind: str, pool: str) -> str:
    return f"{PREFIX}.call.{kind}.{pool}"


def stream_of(kind: str, pool: str) -> str:
    """A stream for each pool: its calls wait for no others, and another server may lead it."""
    return f"{PREFIX}_{kind}_{pool}"


def control_subject(pool: str) -> str:
    """Where gateways cancel calls, and ask for results again."""
    return f"{PREFIX}.control.{pool}"


def reply_subject(pool: str, gateway: str, call: str) -> str:
    return f"{PREFIX}.reply.{pool}.{gateway}.{call}"


def registry_subject(pool: str, worker: str) -> str:
    """The key of a worker in the registry, as the subject that sets it."""
    return f"$KV.{REGISTRY}.{pool}.{worker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCall:
    """A call as it travels: what the gateway decided, and everything its execution needs."""

    tool: str
    digest: str
    args: Mapping[str, Any]
    decision: Mapping[str, Any]
    approved: bool
    session: str
    user: str
    role: str
    origin: str
    timeout: float
    version: str
    id: str = ""
    confinement: str = Confinement.WORK.value
    hosts: tuple[str, ...] | None = None
    seconds: float | None = None

    def to_call(self) -> ToolCall:
        return ToolCall(
            tool=self.tool,
            args=self.args,
            session=self.session,
            principal=Principal(user=self.user, role=Role(self.role)),
            origin=self.origin,
            record_scope=RecordScope.SESSION,
            timeout=self.timeout,
            id=self.id,
        )

    def to_bounds(self) -> ProgramBounds:
        hosts = None if self.hosts is None else frozenset(self.hosts)
        return ProgramBounds(confinement=Confinement(self.confinement), hosts=hosts, seconds=self.seconds)


def new_remote_call(action: Action, meta: Meta, bounds: ProgramBounds, *, timeout: float, version: str) -> RemoteCall:
    call = action.call
    return RemoteCall(
        tool=action.spec.name,
        digest=spec_digest(action.spec),
        args=action.args,
        decision=meta.verdict.to_dict(),
        approved=meta.approved_by is not None,
        session=call.session,
        user=call.principal.user,
        role=call.principal.role.value,
        origin=call.origin,
        timeout=timeout,
        version=version,
        id=call.id,
        confinement=bounds.confinement.value,
        hosts=None if bounds.hosts is None else tuple(sorted(bounds.hosts)),
        seconds=bounds.seconds,
    )


def spec_digest(spec: ToolSpec) -> str:
    """Identifies what a tool accepts and how dangerous it is: a worker with another one refuses the call. Descriptions
    do not count: they tell of the machine."""
    return _digest(spec.name, spec.danger.value, encode(spec.input))


@lru_cache(maxsize=4_096)
def _digest(*parts: str | bytes) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def encode(value: Any) -> bytes:
    """Raises TypeError or ValueError for what JSON cannot carry."""
    return json.dumps(value, separators=(",", ":"), check_circular=False).encode()


@dataclass(frozen=True, slots=True)
class SignedCall:
    """A signed call as a message: headers and body."""

    headers: Mapping[str, str]
    body: bytes


def seal(call: RemoteCall, key: PoolKey, *, subject: str, reply: str, issued: float, lifetime: float) -> SignedCall:
    """Raises ToolError for arguments that JSON cannot carry."""
    try:
        body = encode({each.name: getattr(call, each.name) for each in fields(call)})
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"the arguments cannot be sent to a worker: {problem}") from None
    values = (PROTOCOL, call.id, f"{issued:.3f}", f"{issued + lifetime:.3f}", reply)
    headers = dict(zip(_SIGNED, values, strict=True))
    headers[_SIGNATURE] = key.sign(_signed_bytes(subject, headers, body)).hex()
    return SignedCall(headers, body)


class CallRefused(Exception):
    """The worker did not begin the call; the message says why."""


def call_id_of(headers: Mapping[str, str] | None) -> str:
    return (headers or {}).get("Toolreeve-Call", "")


def reply_of(headers: Mapping[str, str] | None, pool: str) -> str | None:
    """Where to answer; None for a subject that is not the pool's. It may not be signed: only a refusal goes there
    before the signature is verified."""
    reply = (headers or {}).get("Toolreeve-Reply", "")
    return reply if reply.startswith(f"{PREFIX}.reply.{pool}.") else None


def unseal(
    headers: Mapping[str, str] | None, body: bytes, keys: Sequence[PoolKey], *, subject: str, now: float
) -> RemoteCall:
    """The call, if a gateway signed it and it has not expired. Raises CallRefused."""
    found = headers or {}
    if (protocol := found.get("Toolreeve-Protocol")) != PROTOCOL:
        raise CallRefused(
            f"the gateway speaks protocol {protocol}, this worker {PROTOCOL}: use one version of Toolreeve"
        )
    try:
        signed = is_signed(_signed_bytes(subject, found, body), bytes.fromhex(found[_SIGNATURE]), keys)
    except (KeyError, ValueError):
        signed = False
    if not signed:
        raise CallRefused("not signed with a key of this worker's pool (workers.pools)")
    _check_times(float(found["Toolreeve-Issued"]), float(found["Toolreeve-Expires"]), now)
    known = {each.name for each in fields(RemoteCall)}
    values = json.loads(body)
    if values.keys() != known:
        raise CallRefused(f"the gateway is another version of Toolreeve: {values.get('version', 'unknown')}")
    return RemoteCall(**values)


def _check_times(issued: float, expires: float, now: float) -> None:
    if now < issued - CLOCK_TOLERANCE:
        raise CallRefused(f"issued {issued - now:.0f} s in the future by this worker's clock: synchronize the clocks")
    if now > expires:
        raise CallRefused(
            f"issued {now - issued:.0f} s ago by this worker's clock and valid for {expires - issued:.0f} s"
            " (workers.queue_timeout): synchronize the clocks if that is not so"
        )


def _signed_bytes(subject: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """With lengths, so that no two messages have the same bytes."""
    parts = [subject.encode(), *(headers[name].encode() for name in _SIGNED), hashlib.sha256(body).digest()]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def encode_output(output: Output, meta: Meta) -> bytes:
    """Raises ToolError for data that JSON cannot carry."""
    shown = {each.name: getattr(output, each.name) for each in fields(Output)}
    shown["labels"] = list(output.labels)
    try:
        return encode({"output": shown, "meta": _meta(meta)})
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolError(ErrorCode.TOOL_EXEC, f"the result cannot be sent from a worker: {problem}") from None


def encode_error(error: ToolError, meta: Meta) -> bytes:
    shown = {
        "code": error.code.value,
        "message": error.message,
        "suggestions": error.suggestions,
        "detail": error.detail,
        "retryable": error.retryable,
        "data": error.data,
        "meta": error.meta,
    }
    try:
        return encode({"error": shown, "meta": _meta(meta)})
    except (TypeError, ValueError, RecursionError):
        return encode({"error": {**shown, "detail": None, "data": None, "meta": None}, "meta": _meta(meta)})


def encode_refusal(reason: str) -> bytes:
    return encode({"refused": reason})


def _meta(meta: Meta) -> dict[str, Any]:
    return {"attempts": meta.attempts, "quarantined": meta.quarantined}


def decode_result(content: bytes, meta: Meta) -> Output:
    """The output; fills in `meta`. Raises ToolError as the tool did, and CallRefused if nothing ran."""
    try:
        found = json.loads(content)
        if "refused" in found:
            raise CallRefused(str(found["refused"]))
        meta.attempts = int(found["meta"]["attempts"])
        meta.quarantined.extend(map(str, found["meta"]["quarantined"]))
        if "error" in found:
            raise _to_error(found["error"])
        return _to_output(found["output"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ToolError(ErrorCode.TOOL_EXEC, f"the worker sent an invalid result: {problem!r:.200}") from None


_NONE = type(None)
_ERROR_TYPES: Mapping[str, tuple[type, ...]] = {
    "message": (str,),
    "suggestions": (list,),
    "retryable": (bool, _NONE),
    "data": (dict, _NONE),
    "meta": (dict, _NONE),
}
_OUTPUT_TYPES: Mapping[str, tuple[type, ...]] = {
    "data": (dict,),
    "truncated": (bool,),
    "labels": (list,),
    "command": (str, _NONE),
    "sandbox": (str,),
    "cost": (int, float, _NONE),
    "images": (list,),
    "raw": (dict, _NONE),
    "diagnostics": (dict, _NONE),
}
_ITEMS = {"suggestions": str, "labels": str, "images": dict}


def _check_types(shown: Mapping[str, Any], types: Mapping[str, tuple[type, ...]]) -> None:
    """A worker is not trusted to send what the road relies on. Raises TypeError, ValueError."""
    for name, value in shown.items():
        if name in types and type(value) not in types[name]:
            raise TypeError(f"{name} is of the type {type(value).__name__}")
        if name in _ITEMS and not all(isinstance(each, _ITEMS[name]) for each in value):
            raise TypeError(f"{name} holds something else than {_ITEMS[name].__name__}")
    cost = shown.get("cost")
    if cost is not None and not 0 <= cost < math.inf:
        raise ValueError("the cost is no amount")


def _to_error(shown: Mapping[str, Any]) -> ToolError:
    _check_types(shown, _ERROR_TYPES)
    return ToolError(
        ErrorCode(shown["code"]),
        shown["message"],
        suggestions=shown["suggestions"],
        detail=shown["detail"],
        retryable=shown["retryable"],
        data=shown["data"],
        meta=shown["meta"],
    )


def _to_output(shown: Mapping[str, Any]) -> Output:
    _check_types(shown, _OUTPUT_TYPES)
    output = Output(**shown)
    effects = output.effects
    if effects is not None:
        effects = tuple(Effect(EffectKind(kind), target, Reach(reach)) for kind, target, reach in effects)
    order = tuple((stream, length) for stream, length in output.order)
    return replace(output, effects=effects, order=order, labels=tuple(output.labels), images=tuple(output.images))


def pieces(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Pieces of a result, each with the number that its subject ends with: `<number>.<count>`."""
    count = max(1, -(-len(content) // PIECE))
    for number in range(count):
        yield f"{number}.{count}", content[number * PIECE : (number + 1) * PIECE]


@dataclass(slots=True)
class Assembler:
    """Joins the pieces of one result, in any order."""

    _parts: dict[int, bytes] = field(default_factory=dict)

    def add(self, number: int, count: int, piece: bytes) -> bytes | None:
        """The whole result with its last piece."""
        if not 0 <= number < count <= MAX_PIECES or len(piece) > PIECE:
            return None
        self._parts[number] = piece
        if len(self._parts) < count:
            return None
        return b"".join(self._parts[each] for each in sorted(self._parts))
