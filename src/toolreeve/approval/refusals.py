"""Errors of calls that nobody approved, and what the caller can do."""

from collections.abc import Mapping

from toolreeve.approval.pending import PendingApproval
from toolreeve.approval.request import Answer, Request, grounds_of
from toolreeve.core.action import Action
from toolreeve.core.errors import ErrorCode, ToolError

PASSED = "pass `approve=` (an async function, or a channel) to Toolreeve"
TERMINAL = "run it in a terminal, where the question can be asked"
BEFOREHAND = "allow it beforehand: add the tool to `allowed_tools`, or a rule to policy.yaml"
EXPLAINED = "see what decides: toolreeve policy explain TOOL"
TELL_USER = "tell the user that this call needs their approval"
_WAYS: Mapping[str, tuple[str, ...]] = {
    "python": (PASSED, BEFOREHAND),
    "cli": (TERMINAL, BEFOREHAND, EXPLAINED),
}
AWAY = "nobody can be asked now"
DISMISSED = "the question was dismissed without an answer"


def suggest_channels(origin: str, *, beforehand: bool = True) -> tuple[str, ...]:
    """What the caller can do to get the question answered. `beforehand` is False for a tool whose calls differ as much
    as commands do: allowing the tool would allow them all. A model, at any other door, does not learn what would loosen
    the policy."""
    return tuple(way for way in _WAYS.get(origin, (TELL_USER,)) if beforehand or way is not BEFOREHAND)


def no_channel(action: Action) -> ToolError:
    why = grounds_of(action)
    data = f"Tool {action.spec.name!r} (danger={action.danger.value}) requires approval but nobody can be asked"
    return ToolError(
        ErrorCode.PERMISSION,
        f"{data}: {why}" if why else data,
        suggestions=suggest_channels(action.call.origin, beforehand=action.tool.grounds is None),
    )


def refused(request: Request, answer: Answer) -> ToolError:
    by = f" by {answer.by}" if answer.by else ""
    note = f": {answer.note}" if answer.note else ""
    return ToolError(ErrorCode.APPROVAL_DENIED, f"{request.heading} was refused{by}{note}{request.aside}")


def timed_out(request: Request, timeout: float) -> ToolError:
    ways = suggest_channels(request.origin, beforehand=not request.grounds)
    return ToolError(
        ErrorCode.APPROVAL_TIMEOUT,
        f"{request.heading} requires approval, and nobody answered within {timeout:g} s{request.aside}",
        suggestions=("repeat the call when a person can answer", *(way for way in ways if way is BEFOREHAND)),
    )


def unanswered(request: Request, why: str) -> ToolError:
    return ToolError(
        ErrorCode.PERMISSION,
        f"{request.heading} requires approval but no channel gave a usable answer: {why}",
        suggestions=suggest_channels(request.origin, beforehand=not request.grounds),
    )


def still_pending(request: Request, waiting: PendingApproval, why: str = AWAY) -> ToolError:
    data = {"status": "pending", "approval_id": waiting.id, "expires": waiting.expires}
    return ToolError(
        ErrorCode.APPROVAL_PENDING,
        f"{request.heading} requires approval, and {why}{request.aside}. Nothing has taken effect."
        f" The approval {waiting.id!r} is pending: a person must decide it, in the console or on their own terminal",
        suggestions=(
            f"tell the person that the approval {waiting.id!r} is pending",
            "after they have decided, repeat the call",
        ),
        detail=data,
        data=data,
    )
