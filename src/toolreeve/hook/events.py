"""Hook events of agent clients, and each client's answer format.

Standard library only: this is the hot path of `toolreeve hook`. An answer that a client would not understand lets the
call through, so each format is exactly what that client's own parser accepts.
"""

import json

MAX_EVENT = 16 * 1024 * 1024
"""Bytes of one event: a file that an agent writes is part of it."""
TOOL_EVENTS = {
    "claude-code": ("PreToolUse", "PermissionRequest"),
    "codex": ("PreToolUse", "PermissionRequest"),
    "gemini": ("BeforeTool",),
}
PROMPT_EVENTS = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}
CLIENTS = tuple(TOOL_EVENTS)
WORKSPACE_VARIABLES = {"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}
"""The folder that the client was started in: its `cwd` follows the agent's `cd`."""
NEEDS_PERSON = "needs approval by a person, which this client cannot ask for now"
HEADLESS = "headless"
"""Follows the client's name in what the hook tells a server."""
BLOCK = 2
"""The exit status that makes all of these clients refuse the call and show stderr as the reason."""

Event = dict[str, object]


class MalformedEvent(ValueError):
    """The event cannot be judged, so the call is refused."""


def parse_event(client: str, raw: bytes) -> Event:
    """Raises MalformedEvent, which says what is wrong."""
    if len(raw) > MAX_EVENT:
        raise MalformedEvent(f"the event is larger than {MAX_EVENT // 1024 // 1024} MB")
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        raise MalformedEvent("the event is not valid JSON") from None
    if not isinstance(event, dict):
        raise MalformedEvent("the event is not a JSON object")
    name = event.get("hook_event_name")
    known = (*TOOL_EVENTS[client], PROMPT_EVENTS[client])
    if name not in known:
        raise MalformedEvent(f"the event {str(name)[:80]!r} is not one of {', '.join(known)}")
    expected = {"prompt": str} if name == PROMPT_EVENTS[client] else {"tool_name": str, "tool_input": dict}
    for key, kind in {"session_id": str, **expected}.items():
        if not isinstance(event.get(key), kind):
            raise MalformedEvent(f"{key} is missing or not {'an object' if kind is dict else 'a text'}")
    if not isinstance(event.get("cwd", ""), str):
        raise MalformedEvent("cwd is not a text")
    return event


def is_prompt(client: str, event: Event) -> bool:
    return event["hook_event_name"] == PROMPT_EVENTS[client]


def cannot_ask(client: str, event: Event, *, headless: bool) -> bool:
    """Whether the client has no way to ask its user because of this event."""
    return headless or (client == "codex" and event["hook_event_name"] == "PreToolUse")


def answer(client: str, event_name: str, decision: str, reason: str) -> str:
    """What to print for a decision: allow, ask, deny, or `none` to leave it to the client. Empty means nothing."""
    if decision == "none" or (client == "codex" and event_name == "PreToolUse" and decision == "allow"):
        return ""
    if client == "gemini":
        shown = {"systemMessage": reason} if decision == "ask" else {}
        return json.dumps({"decision": decision, "reason": reason, **shown})
    if event_name == "PermissionRequest":
        return _permission_answer(decision, reason)
    return _specific(event_name, permissionDecision=decision, permissionDecisionReason=reason)


def _permission_answer(decision: str, reason: str) -> str:
    """The client is about to ask its user: for `ask`, it does."""
    if decision == "ask":
        return ""
    message = {"message": reason} if decision == "deny" else {}
    return _specific("PermissionRequest", decision={"behavior": decision, **message})


def _specific(event_name: str, **fields: object) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event_name, **fields}})
