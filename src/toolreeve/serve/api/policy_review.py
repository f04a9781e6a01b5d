"""Endpoints of the policy over time: check, simulate and suggestions."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.policy.simulation import Simulation
from toolreeve.record.audit import Filter
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints, Query
from toolreeve.serve.tokens import AccessScope

policy_review = Endpoints("policy")

PolicyText = Annotated[str, Field(max_length=1_000_000, description="A policy file, in YAML.")]
Since = Annotated[str, Field(max_length=40, description="ISO 8601, epoch seconds, or an age: 7d.")]


class CheckBody(Body):
    policy: PolicyText


class PolicyProblem(TypedDict):
    line: int | None
    key: str
    problem: str
    fix: str


class PolicyCheck(TypedDict):
    ok: bool
    rules: int
    problems: list[PolicyProblem]


class SimulateBody(Body):
    policy: PolicyText
    since: Since = "7d"
    limit: Annotated[int, Field(ge=0, le=1000)] = 100


class SimulationReport(TypedDict):
    """`calls` are the first of those whose decision would change; a caller sees the arguments of its own."""

    total: int
    left_out: int
    changed: int
    by: list[dict[str, Any]]
    prompts_before: int
    prompts_after: int
    calls: list[dict[str, Any]]
    problems: list[PolicyProblem]


class SuggestionQuery(Query):
    since: Since = "30d"
    often: Annotated[int, Field(ge=1, le=1000)] = 3


class SuggestedRule(TypedDict):
    sentence: str
    count: int
    rule: dict[str, Any]


class SuggestionList(TypedDict):
    suggestions: list[SuggestedRule]


@policy_review.post("/policy/check", AccessScope.CALL)
async def check_policy(request: ApiRequest, body: CheckBody) -> PolicyCheck:
    """Check a policy file and its examples, without using it."""
    try:
        rules = (await request.services.reeve.internals.review_policy()).parse(body.policy, "policy")
    except (ConfigErrors, ConfigError) as problems:
        return {"ok": False, "rules": 0, "problems": _problems(problems)}
    return {"ok": True, "rules": len(rules), "problems": []}


@policy_review.post("/policy/simulate", AccessScope.APPROVE)
async def simulate_policy(request: ApiRequest, body: SimulateBody) -> SimulationReport:
    """Which recorded calls a policy file would decide differently. Nothing runs."""
    review = await request.services.reeve.internals.review_policy()
    try:
        rules = review.parse(body.policy, "policy")
    except (ConfigErrors, ConfigError) as problems:
        report: Any = Simulation().to_dict(0) | {"problems": _problems(problems)}
        refused: SimulationReport = report
        return refused
    found = await review.simulate(rules, since=Filter.parse({"since": body.since}).since)
    shown: Any = found.to_dict(body.limit)
    simulated: SimulationReport = shown | {"problems": []}
    return simulated


@policy_review.get("/policy/suggestions", AccessScope.APPROVE)
async def suggest_policy(request: ApiRequest, query: SuggestionQuery) -> SuggestionList:
    """The narrowest rules for calls that people approved often."""
    since = Filter.parse({"since": query.since}).since
    review = await request.services.reeve.internals.review_policy()
    found: Any = [each.to_dict() for each in await review.suggest(since=since, often=query.often)]
    return {"suggestions": found}


def _problems(found: ConfigErrors | ConfigError) -> list[PolicyProblem]:
    """Of the rules; or the one of a text that is no YAML."""
    problems = found.problems if isinstance(found, ConfigErrors) else [found]
    return [{"line": each.line, "key": each.key, "problem": each.problem, "fix": each.fix} for each in problems]
