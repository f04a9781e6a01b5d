"""The question card: what a channel shows about a question, as JSON.

Made from the stored question, so that every channel shows the same. Nothing here decides.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from toolreeve.approval.always_rule import rule_text
from toolreeve.approval.pending import PendingApproval, read_question
from toolreeve.approval.request import Request, Scope
from toolreeve.approval.sentence import changed_lines, client_name, sentence, short_sentence
from toolreeve.core import json
from toolreeve.core.effects import EffectKind
from toolreeve.core.visible import visible

LONGEST_SHOWN = 60_000
"""Characters of all arguments and changes; what is longer is not shown whole by every channel."""
_CUT = ("(too different to compare", "(no preview:", "(binary or too large", "(cut off:", "(the text of ")
SUMMARY = ("kind", "sentence", "short", "danger", "client", "workspace", "session", "user", "why", "layer", "rule")


class StoredQuestion(PendingApproval, Protocol):
    """What a card needs of a stored row."""

    @property
    def feedback(self) -> Any: ...


def summarize(request: Request, *, home: str = "") -> dict[str, Any]:
    """What a list shows of a question."""
    described = describe_question(request, home=home)
    return {key: described[key] for key in SUMMARY}


def describe_question(request: Request, *, home: str = "") -> dict[str, Any]:
    """The part of the card that does not change."""
    verdict = request.verdict
    facts = request.facts
    return {
        "kind": kind_of(request),
        "sentence": sentence(request, home=home),
        "short": short_sentence(request, home=home),
        "tool": request.tool,
        "danger": request.danger.value,
        "client": client_name(request.client, request.origin),
        "workspace": request.workspace,
        "session": request.session,
        "user": request.principal.user,
        "why": verdict.reason,
        "layer": verdict.layer,
        "rule": verdict.rule,
        "args": dict(request.args),
        "defaults": list(request.defaults),
        "effects": [
            {"kind": each.kind.value, "target": each.target, "reach": each.reach.value} for each in request.effects
        ],
        "parts": list(facts.get("parts", ())),
        "files": _files(request),
        "trial": facts.get("trial") or ({"preview": request.preview} if request.tried else None),
        "provenance": list(facts.get("provenance", ())),
        "requested": facts.get("requested", ""),
        "knowable": list(request.knowable),
        "grants": _grants(request),
        "digest": request.digest,
        "channels": list(facts.get("channels", ())),
        "sandbox": facts.get("sandbox"),
        "approvals": request.approvals,
        "call_id": request.call_id,
    }


def card(row: StoredQuestion, *, home: str = "", redact: Callable[[str], str] = str) -> dict[str, Any]:
    """The whole card, without secrets."""
    request = read_question(row.id, row.question)
    answer = row.answer
    made = {
        "id": row.id,
        **describe_question(request, home=home),
        "asked": row.asked,
        "expires": row.expires,
        "state": row.state,
        "votes": [vote["by"] for vote in row.votes],
        "governors": list(row.feedback),
        "answered_by": None if answer is None else answer.get("by"),
        "answered_at": None if answer is None else answer.get("at"),
        "answer": None if answer is None else _answer(answer),
    }
    redacted: dict[str, Any] = redact_texts(made, redact)
    return redacted


def redact_texts(value: Any, redact: Callable[[str], str]) -> Any:
    """The same JSON data without secrets, and nothing cut. Most data is found clean as a whole."""
    joined = "\n".join(_texts(value))
    return value if redact(joined) is joined else _redact_each(value, redact)


def _redact_each(value: Any, redact: Callable[[str], str]) -> Any:
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {redact(str(key)): _redact_each(each, redact) for key, each in value.items()}
        case list() | tuple():
            return [_redact_each(each, redact) for each in value]
        case _:
            return value


def kind_of(request: Request) -> str:
    """write, command, trial, send or plain."""
    if request.tried:
        return "trial"
    kinds = {effect.kind for effect in request.effects}
    if EffectKind.SEND in kinds:
        return "send"
    if request.facts.get("parts") or EffectKind.EXEC in kinds:
        return "command"
    return "write" if kinds & {EffectKind.WRITE, EffectKind.DELETE} else "plain"


def find_withheld(request: Request) -> str:
    """Why the call cannot be allowed for always; empty if it can. What cannot be shown whole is granted once."""
    try:
        text = json.dumps(request.args).decode()
    except (TypeError, RecursionError):
        text = repr(request.args)
    if request.approvals > 1:
        return f"this call needs {request.approvals} approvals each time"
    hidden = sum(map(_hidden_characters, _texts(request.args)))
    if hidden:
        return f"the text holds {hidden} invisible {'character' if hidden == 1 else 'characters'}"
    if len(text) + len(request.preview) > LONGEST_SHOWN:
        return f"the text is longer than {LONGEST_SHOWN:,} characters and cannot be shown whole"
    if any(line.startswith(_CUT) for line in request.preview.split("\n")):
        return "the change cannot be shown whole"
    return ""


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for key, each in value.items() for text in (*_texts(key), *_texts(each))]
        case list() | tuple():
            return [text for each in value for text in _texts(each)]
        case _:
            return []


def _hidden_characters(text: str) -> int:
    if text.isascii() and text.isprintable():
        return 0
    return visible(text.replace("\t", " ").replace("‹", "<")).count("‹U+")


def _files(request: Request) -> list[dict[str, Any]]:
    if "files" in request.facts:
        return list(request.facts["files"])
    changed = [effect for effect in request.effects if effect.kind in (EffectKind.WRITE, EffectKind.DELETE)]
    diff = "" if request.tried or len(changed) != 1 else request.preview
    counted = changed_lines(diff)
    files = []
    for effect in changed:
        kind = "delete" if effect.kind is EffectKind.DELETE else "change"
        if diff.startswith("--- (nothing)"):
            kind = "create"
        added, removed = counted or (None, None)
        files.append({"path": effect.target, "kind": kind, "add": added, "del": removed, "diff": diff or None})
    return files


def _grants(request: Request) -> list[dict[str, Any]]:
    """What a yes for longer may cover, with the rule that would be written, or why it is not offered."""
    found: list[dict[str, Any]] = [{"scope": Scope.ONCE.value, "choice": 0, "rule": None, "text": "this call"}]
    if request.approvals > 1:
        found.append({"scope": Scope.SESSION.value, "withheld": request.withheld})
    for number, choice in enumerate(request.choices if request.approvals == 1 else ()):
        rule = rule_text(choice.rule)
        found.append({"scope": Scope.SESSION.value, "choice": number, "rule": rule, "text": choice.sentence})
    if request.withheld:
        found.append({"scope": Scope.ALWAYS.value, "withheld": request.withheld})
    elif not request.lasting:
        found.append({"scope": Scope.ALWAYS.value, "withheld": "there is no policy file to write the rule to"})
    else:
        for number, choice in enumerate(request.choices):
            rule = rule_text(choice.rule)
            found.append({"scope": Scope.ALWAYS.value, "choice": number, "rule": rule, "text": choice.sentence})
    return found


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("scope", "note", "channel", "expires", "uses", "only")
    word = "allow" if answer["granted"] is True else "deny"
    edited = answer.get("args")
    return {"answer": word, **{key: answer.get(key) for key in keys}, **({} if edited is None else {"args": edited})}
