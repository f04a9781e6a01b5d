"""What counts as an answer, and whose comes first? Of all that are asked, the first that answers this very request.

Whatever else comes back, an error, a truthy value, the answer to another request, is no answer, and the reason is kept.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.approval import elicitation, pending
from toolreeve.approval.channel import Channel
from toolreeve.approval.channels.peer import PeerChannel
from toolreeve.approval.elicitation import NoAnswer
from toolreeve.approval.pending import PendingApproval
from toolreeve.approval.request import Answer, Request
from toolreeve.core.errors import ErrorCode, ToolError

WITHDRAWAL = 1.0
"""How long a channel may take to take its question back; one that will not is left behind."""
PASSED = "pass `approve=` (an async function, or a channel) to Toolreeve"
TERMINAL = "run it in a terminal, where the question can be asked"
BEFOREHAND = "allow it beforehand: add the tool to `allowed_tools`, or a rule to policy.yaml"
EXPLAINED = "see what decides: toolreeve policy explain TOOL"
_WAYS: Mapping[str, tuple[str, ...]] = {
    "python": (PASSED, TERMINAL, BEFOREHAND),
    "cli": (TERMINAL, BEFOREHAND, EXPLAINED),
}


def ways(origin: str, *, beforehand: bool = True) -> tuple[str, ...]:
    """What whoever called from there can do, so that the question can be answered. Not `beforehand` is said of a tool
    whose calls differ as much as commands do: allowing it would allow them all."""
    return tuple(way for way in _WAYS.get(origin, (BEFOREHAND,)) if beforehand or way is not BEFOREHAND)


async def first_answer(request: Request, channels: Sequence[Channel], timeout: float) -> Answer:
    """The first usable answer. Of answers that come at the same moment, a no counts before a yes."""
    asking = {asyncio.create_task(channel.ask(request), name=f"ask-{channel.name}"): channel for channel in channels}
    failures: list[str] = []
    try:
        async with asyncio.timeout(timeout):
            while asking:
                done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                heard = [_hear(task, asking.pop(task), request, failures) for task in done]
                if answers := [answer for answer in heard if answer is not None]:
                    return min(answers, key=lambda answer: answer.granted)
    except TimeoutError:
        raise ToolError(
            ErrorCode.APPROVAL_TIMEOUT,
            f"{request.heading} requires approval, and nobody answered within {timeout:g} s{request.aside}",
            suggestions=("ask again when somebody is there", *(() if request.grounds else (BEFOREHAND,))),
        ) from None
    finally:
        await _withdraw(asking)
    raise ToolError(
        ErrorCode.PERMISSION,
        f"{request.heading} requires approval but no channel gave a usable answer: {'; '.join(failures)}",
        suggestions=ways(request.origin, beforehand=not request.grounds),
    )


def _hear(task: asyncio.Task[Any], channel: Channel, request: Request, failures: list[str]) -> Answer | None:
    """The channel's answer, or None with the reason kept: whatever is not an answer to this request is a failure."""
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


async def brought_answer(request: Request, result: Any) -> Answer:
    """What came back from the client that was shown the question."""
    try:
        answer = elicitation.read_answer(request, result)
    except NoAnswer as problem:
        message = f"{request.heading} requires approval but the client gave no usable answer: {problem}"
        suggestions = ways("client", beforehand=not request.grounds)
        raise ToolError(ErrorCode.PERMISSION, message, suggestions=suggestions) from None
    return _signed(answer, PeerChannel.name, request)


async def noted_answer(request: Request, matter: PendingApproval) -> Answer:
    """What somebody decided on the docket."""
    if matter.answer is None:
        raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: nobody has answered yet")
    return pending.read_answer(request, matter.answer)
