"""Checks a tool's structured result against its output schema.

A result that does not fit is passed on all the same, with a remark. Both the schema and the result come from the
server: a check that would take too long is not made, which is remarked too.
"""

from collections.abc import Mapping
from typing import Any

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.schema import Schema
from toolreeve.core.visible import one_line
from toolreeve.upstream.tools.definition import SchemaCost

MAX_WORK = 5_000_000
MAX_PROBLEMS = 3
MAX_REMARK = 1_000
LETTERS = 16
"""Letters of a text that cost as much as one value."""


class OutputSchema:
    """`document` is the outputSchema of a tool, already checked."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schema = Schema(document, linear=True)
        try:
            self._schema.check()
            self._max_weight = MAX_WORK // max(SchemaCost(document).of(document), 1)
        except ToolreeveError:  # its patterns need an engine without a time bound
            self._max_weight = -1

    def mismatch(self, structured: Any) -> str:
        """How a result's structuredContent does not fit the schema; empty where it fits."""
        if structured is None:
            return "the result has no structuredContent, which the tool's outputSchema requires"
        if weigh(structured, self._max_weight) > self._max_weight:
            return "the result's structuredContent is too costly to check against the tool's outputSchema"
        if self._schema.accepts(structured):
            return ""
        remark = f"the result's structuredContent does not fit the tool's outputSchema: {self._problems(structured)}"
        return one_line(remark)[:MAX_REMARK]

    def _problems(self, structured: Any) -> str:
        try:
            return "; ".join(map(str, self._schema.problems(structured, MAX_PROBLEMS)))
        except ValueError:
            return "it is nested too deeply"


def weigh(value: Any, enough: int) -> int:
    """How much there is to check; more than `enough` is not counted."""
    weight = 0
    left = [value]
    while left and weight <= enough:
        each = left.pop()
        weight += 1
        if isinstance(each, str):
            weight += len(each) // LETTERS
        elif isinstance(each, dict):
            left.extend(each.values())
            weight += sum(map(len, each)) // LETTERS
        elif isinstance(each, list):
            left.extend(each)
    return weight
