"""Does the policy decide as somebody expects? Cases from a file, each tried without running anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.core.documents import read_document
from toolreeve.core.errors import ConfigError, ConfigErrors, ToolError
from toolreeve.core.schema import Schema

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

_CASE: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tool", "expect"],
    "properties": {
        "tool": {"type": "string"},
        "args": {"type": "object"},
        "expect": {"enum": ["allow", "ask", "deny"]},
        "cost": {"type": "number"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    tool: str
    args: Mapping[str, Any]
    expect: str
    cost: float
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    case: Case
    answer: str
    reason: str

    @property
    def right(self) -> bool:
        return self.answer == self.case.expect

    def to_dict(self) -> dict[str, Any]:
        case = self.case
        told = {"place": case.place, "tool": case.tool, "args": dict(case.args), "expect": case.expect}
        return told | {"answer": self.answer, "reason": self.reason, "ok": self.right}


def read_cases(path: Path) -> Sequence[Case]:
    """Raises ConfigErrors with everything that is wrong with the file."""
    document = read_document(path)
    if not isinstance(document.value, list):
        raise ConfigErrors([document.error("is not a list of cases", fix="write - tool: …, expect: … for each")])
    schema = Schema(_CASE)
    problems = [
        document.error(str(problem), path=(number,))
        for number, entry in enumerate(document.value)
        for problem in schema.problems(entry)
    ]
    if problems:
        raise ConfigErrors(problems)
    return [
        Case(
            tool=entry["tool"],
            args=entry.get("args", {}),
            expect=entry["expect"],
            cost=entry.get("cost", 0.0),
            place=f"{path}:{document.line((number,))}",
        )
        for number, entry in enumerate(document.value)
    ]


def try_case(runtime: "Toolreeve", case: Case) -> CaseOutcome:
    """A call that the tool's schema refuses counts as neither answer, and says why."""
    try:
        verdict = runtime.explain(case.tool, case.args, estimated_cost=case.cost).verdict
    except ToolError as problem:
        return CaseOutcome(case=case, answer=str(problem.code), reason=problem.message)
    return CaseOutcome(case=case, answer=verdict.decision.word, reason=verdict.reason)


def count_examples(path: Path) -> int:
    """How many calls the rules of a policy file are tried on when it is read."""
    try:
        value = read_document(path).value
    except ConfigError:
        return 0
    rules = value.get("rules") if isinstance(value, Mapping) else None
    written = [rule for rule in rules or () if isinstance(rule, Mapping)]
    return sum(len(rule.get(key) or ()) for rule in written for key in ("matches", "not_matches"))
