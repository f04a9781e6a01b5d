"""Governors: programs that review questions, and what agents answer, before people do.

A governor's reject vetoes a policy's approval. An error, a timeout, bad JSON, a failed program or an unknown status is
never an approval. Governors see the call, and never what tools returned.
"""

import asyncio
import importlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ToolError
from toolreeve.core.http import Http, HttpRequest
from toolreeve.core.process import Processes, ProcessLimits, ProcessRequest
from toolreeve.core.threads import run_interruptibly
from toolreeve.core.trial import Confinement

MAX_MESSAGES = 20
MAX_TEXT = 2_000
MAX_REPLY = 256 * 1024
MAX_FUNCTIONS = 8
_places = threading.BoundedSemaphore(MAX_FUNCTIONS)


class GovernorStatus(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    NEEDS_ATTENTION = "needs_attention"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorSpec:
    """`command` is the program of a script, or `package.module:function` of a python governor. `requires_manual`: its
    approval is not enough, a person must decide as well."""

    id: str
    type: str
    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int = 5000
    requires_manual: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorSettings:
    """`auto_decision`: all_approve lets a call run that every governor approves; otherwise they only reject."""

    permission: tuple[GovernorSpec, ...] = ()
    output: tuple[GovernorSpec, ...] = ()
    stop_on_first_reject: bool = True
    auto_decision: str = ""
    max_iterations: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorResult:
    governor: str
    status: GovernorStatus
    messages: tuple[str, ...] = ()
    option: str = ""
    score: float | None = None
    follow_up: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "governorId": self.governor,
            "status": str(self.status),
            "messages": list(self.messages),
            "optionId": self.option or None,
            "score": self.score,
            "followUpPrompt": self.follow_up or None,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What the governors of one phase said. `needs_person`: none rejected, and the approvals are not enough."""

    phase: str
    at: float
    results: tuple[GovernorResult, ...]
    needs_person: bool

    @property
    def rejected(self) -> GovernorResult | None:
        return next((each for each in self.results if each.status is GovernorStatus.REJECT), None)

    @property
    def all_approve(self) -> bool:
        approving = all(each.status is GovernorStatus.APPROVE for each in self.results)
        return bool(self.results) and approving and not self.needs_person

    @property
    def follow_up(self) -> str:
        """What the agent should do about it."""
        return "\n".join(each.follow_up for each in self.results if each.follow_up)

    def to_dict(self) -> dict[str, Any]:
        counted = ", ".join(f"{each.governor}: {each.status}" for each in self.results)
        results = [each.to_dict() for each in self.results]
        return {"phase": self.phase, "timestamp": self.at, "summary": counted, "results": results}


class Governors:
    """Runs scripts in the sandbox, read-only and without network, HTTP through the network guard, and Python functions
    by their import path, which only the operator's own file can name."""

    def __init__(
        self,
        settings: GovernorSettings,
        *,
        processes: Processes,
        http: Http,
        now: Callable[[], float],
        workspace: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings
        self._processes = processes
        self._http = http
        self._now = now
        self._workspace = workspace
        self._environment = environment or {}

    async def review_call(
        self, call: Mapping[str, Any], *, task: str, session: str, policies: Sequence[Mapping[str, Any]] = ()
    ) -> Review:
        body = {
            "phase": "permission",
            "taskId": task,
            "sessionId": session,
            "toolCall": dict(call),
            "policies": list(policies),
        }
        return await self._review("permission", self.settings.permission, body)

    async def review_output(self, output: str, *, task: str, session: str, iteration: int = 0) -> Review:
        body = {
            "phase": "post_run",
            "taskId": task,
            "sessionId": session,
            "agentOutput": output,
            "iteration": iteration,
            "policies": [],
        }
        return await self._review("post_run", self.settings.output, body)

    async def _review(self, phase: str, governors: Sequence[GovernorSpec], body: Mapping[str, Any]) -> Review:
        results: list[GovernorResult] = []
        for governor in governors:
            results.append(await self._ask(governor, body))
            if results[-1].status is GovernorStatus.REJECT and self.settings.stop_on_first_reject:
                break
        manual = any(governor.requires_manual for governor in governors)
        unclear = any(each.status is not GovernorStatus.APPROVE for each in results)
        return Review(phase=phase, at=self._now(), results=tuple(results), needs_person=manual or unclear)

    async def _ask(self, governor: GovernorSpec, body: Mapping[str, Any]) -> GovernorResult:
        try:
            async with asyncio.timeout(governor.timeout_ms / 1000):
                return read_reply(governor.id, await self._reply(governor, body))
        except TimeoutError:
            return _failed(governor, f"did not answer within {governor.timeout_ms} ms (timeout_ms)")
        except ToolError as problem:
            return _failed(governor, problem.message)
        except Exception as problem:  # the governor's own code: whatever it raises is no approval
            return _failed(governor, f"{type(problem).__name__}: {problem}")

    async def _reply(self, governor: GovernorSpec, body: Mapping[str, Any]) -> Any:
        match governor.type:
            case "script":
                return await self._run_script(governor, body)
            case "http":
                return await self._post(governor, body)
            case _:
                return await _call_function(governor.command[0], body)

    async def _run_script(self, governor: GovernorSpec, body: Mapping[str, Any]) -> Any:
        request = ProcessRequest(
            argv=governor.command,
            directory=self._workspace,
            environment=dict(self._environment),
            stdin=json.dumps(body),
            network="none",
            confinement=Confinement.LOOK,
            limits=ProcessLimits(timeout=governor.timeout_ms / 1000, output_kb=MAX_REPLY // 1024),
        )
        ended = await self._processes.run(request)
        if ended.exit_code != 0:
            last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise ValueError(f"exit status {ended.exit_code}{': ' + last[0][:200] if last else ''}")
        if ended.truncated:
            raise ValueError("printed more than its output limit")
        return json.loads(ended.stdout)

    async def _post(self, governor: GovernorSpec, body: Mapping[str, Any]) -> Any:
        request = HttpRequest(
            method="POST",
            url=governor.url,
            headers={"content-type": "application/json", **governor.headers},
            body=json.dumps(body),
            timeout=governor.timeout_ms / 1000,
        )
        reply = await self._http.send(request)
        if reply.status != 200:
            raise ValueError(f"HTTP status {reply.status}")
        if reply.truncated:
            raise ValueError("the reply is too large")
        return json.loads(bytes(reply.body))


async def _call_function(path: str, body: Mapping[str, Any]) -> Any:
    """A plain function runs in a thread of its own, which is interrupted at its timeout. One that hangs outside Python
    keeps its place: at most `MAX_FUNCTIONS` are left behind."""
    function = find_function(path)
    if inspect.iscoroutinefunction(function):
        return await function(dict(body))
    result = await run_interruptibly(partial(_occupy_place, function, dict(body)))
    return await result if isinstance(result, Awaitable) else result


def _occupy_place(function: Callable[..., Any], body: Mapping[str, Any]) -> Any:
    if not _places.acquire(blocking=False):
        raise ValueError(f"{MAX_FUNCTIONS} calls of Python governors have not returned; no further one is started")
    try:
        return function(body)
    finally:
        _places.release()


def find_function(path: str) -> Callable[..., Any]:
    """Raises ValueError, TypeError, ImportError or AttributeError."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise ValueError(f"{path!r} is not of the form package.module:function")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{path!r} cannot be called")
    function: Callable[..., Any] = found
    return function


def read_reply(governor: str, reply: Any) -> GovernorResult:
    """What is not a well-formed reply is an error, which approves nothing."""
    if not isinstance(reply, Mapping) or reply.get("status") not in set(GovernorStatus):
        return GovernorResult(
            governor=governor, status=GovernorStatus.ERROR, messages=(f"replied {reply!r:.120}, which has no status",)
        )
    messages = reply.get("messages") or ()
    if isinstance(messages, str):
        messages = (messages,)
    texts = [str(each)[:MAX_TEXT] for each in messages] if isinstance(messages, list | tuple) else []
    score = reply.get("score")
    metadata = reply.get("metadata")
    return GovernorResult(
        governor=governor,
        status=GovernorStatus(reply["status"]),
        messages=tuple(texts[:MAX_MESSAGES]),
        option=str(reply.get("optionId") or ""),
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        follow_up=str(reply.get("followUpPrompt") or "")[:MAX_TEXT],
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def _failed(governor: GovernorSpec, problem: str) -> GovernorResult:
    return GovernorResult(governor=governor.id, status=GovernorStatus.ERROR, messages=(problem[:MAX_TEXT],))
