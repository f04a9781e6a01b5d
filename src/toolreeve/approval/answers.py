"""Collecting answers: the first channel that answers this request decides.

An error, a truthy value or the answer to another request is not an answer; its reason is kept for the error message.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.approval import pending
from toolreeve.approval.channel import Channel
from toolreeve.approval.pending import PendingApproval
from toolreeve.approval.request import Answer, Request
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.peer import NoAnswer, PriorAnswer

WITHDRAWAL = 1.0
"""Seconds that a cancelled channel gets to withdraw its question; after that it is abandoned."""
PASSED = "pass `approve=` (an async function, or a channel) to Toolreeve"
TERMINAL = "run it in a terminal, where the question can be asked"
BEFOREHAND = "allow it beforehand: add the tool to `allowed_tools`, or a rule to policy.yaml"
EXPLAINED = "see what decides: toolreeve policy explain TOOL"
TOLD = "tell the user that this call needs their approval"
_WAYS: Mapping[str, tuple[str, ...]] = {
    "python": (PASSED, BEFOREHAND),
    "cli": (TERMINAL, BEFOREHAND, EXPLAINED),
}


def suggest_channels(origin: str, *, beforehand: bool = True) -> tuple[str, ...]:
    """What the caller can do to get the question answered. `beforehand` is False for a tool whose calls differ as much
    as commands do: allowing the tool would allow them all. A model, at any other door, is not told what would loosen
    the policy."""
    return tuple(way for way in _WAYS.get(origin, (TOLD,)) if beforehand or way is not BEFOREHAND)


def _allowing(request: Request) -> tuple[str, ...]:
    ways = suggest_channels(request.origin, beforehand=not request.grounds)
    return tuple(way for way in ways if way is BEFOREHAND)


async def first_answer(request: Request, channels: Sequence[Channel], timeout: float) -> Answer:
    """The first usable answer. Of simultaneous answers, a denial wins."""
    asking = {asyncio.create_task(channel.ask(request), name=f"ask-{channel.name}"): channel for channel in channels}
    failures: list[str] = []
    try:
        async with asyncio.timeout(timeout):
            while asking:
                done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                heard = [_read_answer(task, asking.pop(task), request, failures) for task in done]
                if answers := [answer for answer in heard if answer is not None]:
                    return min(answers, key=lambda answer: answer.granted)
    except TimeoutError:
        raise ToolError(
            ErrorCode.APPROVAL_TIMEOUT,
            f"{request.heading} requires approval, and nobody answered within {timeout:g} s{request.aside}",
            suggestions=("repeat the call when a person can answer", *_allowing(request)),
        ) from None
    finally:
        await _withdraw(asking)
    raise ToolError(
        ErrorCode.PERMISSION,
        f"{request.heading} requires approval but no channel gave a usable answer: {'; '.join(failures)}",
        suggestions=suggest_channels(request.origin, beforehand=not request.grounds),
    )


def _read_answer(task: asyncio.Task[Any], channel: Channel, request: Request, failures: list[str]) -> Answer | None:
    """The channel's answer; None, with the reason appended to `failures`, if it does not answer this request."""
    if task.cancelled():
        failures.append(f"{channel.name}: gave up")
        return None
    if (problem := task.exception()) is not None:
        failures.append(f"{channel.name}: {problem or type(problem).__name__}")
        return None
    answer = task.result()
    if not isinstance(answer, Answer) or not isinstance(answer.granted, bool):
        failures.append(f"{channel.name}: answered {answer!r:.80}, which is not an Answer")
        return None
    if answer.digest != request.digest:
        failures.append(f"{channel.name}: answered another request")
        return None
    return _signed(answer, channel.name, request)


def _signed(answer: Answer, channel: str, request: Request) -> Answer:
    return answer if answer.by else replace(answer, by=f"{request.principal.user} via {channel}")


async def _withdraw(asking: Mapping[asyncio.Task[Any], Channel]) -> None:
    if not asking:
        return
    for task in asking:
        task.cancel()
    await asyncio.wait(asking, timeout=WITHDRAWAL)


async def client_answer(request: Request, prior: PriorAnswer) -> Answer:
    """The answer that the client brought with a repeated request."""
    try:
        answer: Answer = prior.read(request)
    except NoAnswer as problem:
        message = f"{request.heading} requires approval but the client gave no usable answer: {problem}"
        suggestions = suggest_channels("client", beforehand=not request.grounds)
        raise ToolError(ErrorCode.PERMISSION, message, suggestions=suggestions) from None
    return _signed(answer, prior.channel, request) if prior.channel else answer


def prior_answer(approval: PendingApproval, binding: str) -> PriorAnswer:
    """The stored answer to a pending approval."""

    def read(request: Request) -> Answer:
        if approval.answer is None:
            raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: nobody has answered yet")
        return pending.read_answer(request, approval.answer)

    return PriorAnswer(binding=binding, question=approval.id, asked=approval.asked, read=read)
