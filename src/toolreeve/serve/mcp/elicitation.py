"""Approvals as MCP elicitation forms.

Only a choice that was offered is an answer: not a truthy value, not a choice that was left out, not an accepted form
without a choice.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.approval.prompt import describe
from toolreeve.approval.request import Answer, Request, Scope
from toolreeve.approval.sentence import sentence
from toolreeve.core.peer import NoAnswer

METHOD = "elicitation/create"
LONGEST = 60_000
LONGEST_NOTE = 2_000
MOST_LISTED = 50
"""With more changed files, a person writes those to keep."""
AUTOMATIC = 0.3
"""A bare decline within so many seconds is the client's own, not a person's: some headless clients decline at once."""
DENY = "deny"
KNOW = "allow once, and keep the recipient as known"
ALLOW = {
    "allow once": Scope.ONCE,
    "allow for this session": Scope.SESSION,
    "always allow": Scope.ALWAYS,
}


def elicitation(request: Request, inbox: str | None = None, *, lists: bool = True) -> dict[str, Any]:
    """The params of `elicitation/create`. With `inbox`, the client opens the question's page in the console: consent
    to that is no answer, and the address is no credential: the client that asks must not approve. `lists`: the client
    knows fields with several choices."""
    if inbox is not None:
        text = f"{sentence(request)}. See the whole call in the console, and decide there."
        return {"mode": "url", "message": text, "url": f"{inbox}/{request.id}", "elicitationId": request.id}
    keep = {} if len(_changed(request)) < 2 else {"keep": _keep_field(request, lists=lists)}
    return {
        "message": _message(request),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "enum": [DENY, *_offered(request)],
                },
                **keep,
                "note": {
                    "type": "string",
                    "title": "Note",
                    "description": "Optional; the model reads it.",
                    "maxLength": LONGEST_NOTE,
                },
            },
            "required": ["decision"],
        },
    }


def read_answer(request: Request, result: Any, *, seconds: float | None = None) -> Answer:
    """`seconds` passed since the form was sent. Raises NoAnswer."""
    match result:
        case {"action": "decline"} if seconds is not None and seconds < AUTOMATIC:
            raise NoAnswer(f"declined by the client itself, after {seconds * 1000:.0f} ms")
        case {"action": "decline"} | {"action": "accept", "content": {"decision": "deny"}}:
            return request.deny(note=_note(result))
        case {"action": "accept", "content": {"decision": str(word)}} if word in _offered(request):
            scope, choice = _offered(request)[word]
            only = _only(request, result)
            return request.allow(scope=scope, note=_note(result), choice=choice, only=only, know=word == KNOW)
        case {"action": "cancel"}:
            raise NoAnswer("the question was dismissed without an answer")
        case _:
            raise NoAnswer(f"answered {result!r:.120}, which is not one of the choices")


def _offered(request: Request) -> Mapping[str, tuple[Scope, int]]:
    """The form lists `deny` before these, in case a client preselects the first choice."""
    wider = list(enumerate(request.choices))[1:]
    offered = {word: (scope, 0) for word, scope in ALLOW.items()}
    if request.knowable:
        offered[KNOW] = (Scope.ONCE, 0)
    offered |= {f"for this session: {choice.sentence}": (Scope.SESSION, index) for index, choice in wider}
    offered |= {f"always: {choice.sentence}": (Scope.ALWAYS, index) for index, choice in wider}
    return {word: meant for word, meant in offered.items() if request.lasting or meant[0] is not Scope.ALWAYS}


def _changed(request: Request) -> Sequence[str]:
    """The files that the call has changed on trial, as the form names them."""
    if not request.tried:
        return ()
    inside = f"{request.workspace.rstrip('/')}/"
    return list(dict.fromkeys(effect.target.removeprefix(inside) for effect in request.effects))


def _keep_field(request: Request, *, lists: bool) -> dict[str, Any]:
    paths = _changed(request)
    if lists and len(paths) <= MOST_LISTED:
        help_text = "Some of the changed files; all if none is chosen."
        return {"type": "array", "title": "Keep only", "description": help_text, "items": _enum(paths)}
    help_text = "Files or folders to keep, one per line or separated by commas; all if empty."
    return {"type": "string", "title": "Keep only", "description": help_text, "maxLength": LONGEST}


def _enum(paths: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(paths)}


def _only(request: Request, result: Mapping[str, Any]) -> Sequence[str] | None:
    """Some of the changes, once. Raises NoAnswer for what is none of them: it must not widen to all."""
    given = result["content"].get("keep")
    if given in (None, "", []):
        return None
    paths = [each.strip() for each in re.split(r"[,\n]", given)] if isinstance(given, str) else given
    if not _changed(request) or not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
        raise NoAnswer(f"chose to keep {given!r:.120}, which was not offered")
    return [each for each in paths if each] or None


def _note(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    note = content.get("note") if isinstance(content, Mapping) else None
    return note[:LONGEST_NOTE] if isinstance(note, str) else ""


def _message(request: Request) -> str:
    """The whole request, because a form has no details view; a message that was cut says so in its first line."""
    text = describe(request, whole=True)
    if len(text) <= LONGEST:
        return text
    cut = describe(request, more="")
    warning = f"(Cut: the whole text has {len(text):,} characters. Omissions are marked with ⋯.)"
    return f"{warning}\n{cut[:LONGEST]}" + ("⋯" if len(cut) > LONGEST else "")
