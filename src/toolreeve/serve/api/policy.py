"""Endpoints of the policy: effective rules, and decisions about calls."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.core.verdict import Decision
from toolreeve.policy.rules import Matcher, PermissionRule
from toolreeve.policy.schema import policy_schema
from toolreeve.policy.state import PolicyState
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints
from toolreeve.serve.api.tools import Arguments, find_tool
from toolreeve.serve.tokens import AccessScope

policy = Endpoints("policy")
_WORDS: Mapping[Decision, Literal["allow", "ask", "deny"]] = {
    Decision.ALLOW: "allow",
    Decision.ASK: "ask",
    Decision.DENY: "deny",
}
_ELSEWHERE = frozenset({"decision", "id", "source", "line", "reason", "advice", "tighten_only", "only_certain"})


Origin = Literal["floor", "deny", "rule"]


class RuleRow(TypedDict):
    """`origin` is floor, deny or rule, in the order of their force; `file` and `line` say where it is written."""

    id: str
    effect: Literal["allow", "ask", "deny"]
    what: str
    origin: Origin
    file: str
    line: int | None
    reason: str


class PolicyReport(TypedDict):
    version: str
    mode: str
    allowed_tools: list[str]
    denied_tools: list[str]
    rules: list[RuleRow]


class ExplainBody(Body):
    tool: Annotated[str, Field(max_length=200)]
    args: Arguments = Field(default_factory=dict)
    estimated_cost: Annotated[float, Field(ge=0, strict=False)] = 0.0


@policy.get("/policy/rules")
async def list_rules(request: ApiRequest) -> PolicyReport:
    """The effective rules, in the order of their force. Rules of other users name what they do: the scope approve or
    manage is needed to see them."""
    state = request.services.reeve.internals.policy()
    own = request.credential.principal.user
    everyone = request.credential.sees_all
    rows = [
        _row(origin, each)
        for origin, matchers in _origins(state)
        for each in matchers
        if everyone or each.rule.user in (None, own)
    ]
    return {
        "version": state.version,
        "mode": state.mode.value,
        "allowed_tools": sorted(state.allowed_tools),
        "denied_tools": sorted(state.denied_tools),
        "rules": rows,
    }


def _origins(state: PolicyState) -> Iterable[tuple[Origin, Iterable[Matcher]]]:
    return (("floor", state.floor), ("deny", state.denies), ("rule", state.rules))


@policy.get("/policy/schema")
async def show_policy_schema(request: ApiRequest) -> dict[str, Any]:  # noqa: ARG001
    """The JSON Schema of policy files, for editors."""
    return policy_schema()


@policy.post("/policy/explain", AccessScope.CALL)
async def explain_call(request: ApiRequest, body: ExplainBody) -> dict[str, Any]:
    """The decision about a call, and why, without running it."""
    tool = find_tool(request, body.tool).spec.name
    found = request.services.reeve.explain(tool, body.args, estimated_cost=body.estimated_cost)
    return found.to_dict()


def _row(origin: Origin, matcher: Matcher) -> RuleRow:
    rule = matcher.rule
    return {
        "id": rule.label,
        "effect": _WORDS[matcher.decision],
        "what": _what(rule),
        "origin": origin,
        "file": str(rule.source),
        "line": rule.line,
        "reason": rule.reason,
    }


def _what(rule: PermissionRule) -> str:
    """The conditions that are set, as in a policy file."""
    shown = []
    for each in fields(rule):
        value = getattr(rule, each.name)
        if each.name not in _ELSEWHERE and value not in (each.default, None, "", (), [], {}, 0, False):
            shown.append(f"{each.name}: {_plain(value)}")
    return ", ".join(shown)[:2000]


def _plain(value: Any) -> str:
    """As it is written in a policy file."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {_plain(each)}" for key, each in value.items()) + "}"
        case list() | tuple() | set() | frozenset():
            return f"[{', '.join(map(_plain, value))}]"
        case Enum():
            return str(value.value)
        case _:
            return str(value)
