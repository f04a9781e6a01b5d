"""Endpoints of the policy over time: check, simulate, save, hits and suggestions."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.policy.simulation import Simulation
from toolreeve.record.audit import Filter
from toolreeve.runtime.policy_file import StalePolicy, difference, read_text, version_of
from toolreeve.serve.api.activity import RANGES, read_calls
from toolreeve.serve.api.call_rows import CallDecision
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints, Query
from toolreeve.serve.api.problems import Problem
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
    """`calls` are the first of those whose decision would change; a caller sees the arguments of its own. `diff` is
    the change of the user's policy file."""

    total: int
    diff: str
    left_out: int
    changed: int
    by: list[dict[str, Any]]
    prompts_before: int
    prompts_after: int
    calls: list[dict[str, Any]]
    problems: list[PolicyProblem]


class PolicyFileText(TypedDict):
    """The user's policy file: `version` is what a change of it must name."""

    path: str
    text: str
    version: str


class SaveBody(Body):
    policy: PolicyText
    version: Annotated[str, Field(max_length=64, description="The version of the file that was edited.")]


class PolicySaved(TypedDict):
    """`diff` is what changed."""

    version: str
    policy_version: str
    diff: str


class RuleHits(TypedDict):
    rule: str
    calls: int
    last: str | None


class HitList(TypedDict):
    """Calls of the last seven days by the rule, or else the layer, that decided; all of the floor are one, and all that
    the mode decided. `whole` if these are all calls."""

    hits: list[RuleHits]
    whole: bool


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
        report: Any = Simulation().to_dict(0) | {"problems": _problems(problems), "diff": ""}
        refused: SimulationReport = report
        return refused
    found = await review.simulate(rules, since=Filter.parse({"since": body.since}).since)
    shown: Any = found.to_dict(body.limit)
    diff = difference(read_text(request.services.reeve.internals.policy.file), body.policy)
    simulated: SimulationReport = shown | {"problems": [], "diff": diff}
    return simulated


@policy_review.get("/policy/file", AccessScope.MANAGE)
async def show_policy_file(request: ApiRequest) -> PolicyFileText:
    """The user's policy file as it is now; empty if there is none."""
    path = request.services.reeve.internals.policy.file
    text = read_text(path)
    return {"path": str(path), "text": text, "version": version_of(text)}


@policy_review.put("/policy", AccessScope.MANAGE)
async def save_policy(request: ApiRequest, body: SaveBody) -> PolicySaved:
    """Replace the user's policy file, and apply it in all running processes. An invalid one changes nothing."""
    reeve = request.services.reeve
    try:
        diff = reeve.internals.policy.save(body.policy, body.version)
    except StalePolicy as stale:
        raise Problem(409, f"{stale}; look at it again", version=stale.version) from None
    except (ConfigErrors, ConfigError) as problems:
        raise Problem(422, "the policy is not valid", problems=_problems(problems)) from None
    user = request.credential.principal.user
    version = reeve.internals.policy().version
    await reeve.internals.journal.note(
        "policy", {"saved": str(reeve.internals.policy.file), "user": user, "version": version, "diff": diff}
    )
    return {"version": version_of(body.policy), "policy_version": version, "diff": diff}


@policy_review.get("/policy/hits")
async def list_hits(request: ApiRequest) -> HitList:
    """How often each rule decided in the last seven days, and when last."""
    rows, whole = await read_calls(request, request.services.now() - RANGES["7d"])
    found: dict[str, RuleHits] = {}
    for row in rows:
        if row["decision"] is not None:
            rule = _decided_by(row["decision"])
            hits = found.setdefault(rule, {"rule": rule, "calls": 0, "last": row["at"]})
            hits["calls"] += 1
    return {"hits": sorted(found.values(), key=lambda each: -each["calls"]), "whole": whole}


@policy_review.get("/policy/suggestions", AccessScope.APPROVE)
async def suggest_policy(request: ApiRequest, query: SuggestionQuery) -> SuggestionList:
    """The narrowest rules for calls that people approved often."""
    since = Filter.parse({"since": query.since}).since
    review = await request.services.reeve.internals.review_policy()
    found: Any = [each.to_dict() for each in await review.suggest(since=since, often=query.often)]
    return {"suggestions": found}


def _decided_by(decision: CallDecision) -> str:
    if decision["layer"] == "floor":
        return "floor"
    return decision["rule"] or ("mode" if decision["layer"] in ("default", "plan", "bypass") else decision["layer"])


def _problems(found: ConfigErrors | ConfigError) -> list[PolicyProblem]:
    """Of the rules; or the one of a text that is no YAML."""
    problems = found.problems if isinstance(found, ConfigErrors) else [found]
    return [{"line": each.line, "key": each.key, "problem": each.problem, "fix": each.fix} for each in problems]
