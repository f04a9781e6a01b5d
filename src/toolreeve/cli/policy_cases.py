"""Policy test cases: expected decisions from a file, checked without running calls."""

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
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    case: Case
    answer: str
    reason: str

    @property
    def passed(self) -> bool:
        return self.answer == self.case.expect

    def to_dict(self) -> dict[str, Any]:
        return {
            "place": self.case.location,
            "tool": self.case.tool,
            "args": dict(self.case.args),
            "expect": self.case.expect,
            "answer": self.answer,
            "reason": self.reason,
            "ok": self.passed,
        }


def read_cases(path: Path) -> Sequence[Case]:
    """Raises ConfigErrors with all problems of the file."""
    document = read_document(path)
    if not isinstance(document.value, list):
        raise ConfigErrors([document.error("is not a list of cases", fix="write `- {tool: …, expect: …}` for each")])
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
            location=f"{path}:{document.line((number,))}",
        )
        for number, entry in enumerate(document.value)
    ]


def try_case(runtime: "Toolreeve", case: Case) -> CaseOutcome:
    """A call that the tool's schema rejects answers with its error code."""
    try:
        verdict = runtime.explain(case.tool, case.args, estimated_cost=case.cost).verdict
    except ToolError as problem:
        return CaseOutcome(case=case, answer=str(problem.code), reason=problem.message)
    return CaseOutcome(case=case, answer=verdict.decision.word, reason=verdict.reason)


def count_examples(path: Path) -> int:
    """The number of examples in the rules of a policy file."""
    try:
        value = read_document(path).value
    except ConfigError:
        return 0
    found = value.get("rules") if isinstance(value, Mapping) else None
    rules = [rule for rule in found or () if isinstance(rule, Mapping)]
    return sum(len(rule.get(key) or ()) for rule in rules for key in ("matches", "not_matches"))
