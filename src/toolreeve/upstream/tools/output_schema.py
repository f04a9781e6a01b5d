"""Is a tool's answer what it promised? What is not is handed on all the same, and noted.

Both the promise and the answer are the server's words: checking one against the other never takes long, whatever they
are. What would is not checked, and that is noted too.
"""

from collections.abc import Mapping
from typing import Any

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.schema import Schema
from toolreeve.core.visible import one_line
from toolreeve.upstream.tools.definition import Weighing

MOST_WORK = 5_000_000
MOST_PROBLEMS = 3
LONGEST_REMARK = 1_000
LETTERS = 16
"""So many letters of a text weigh as much as one value."""


class OutputSchema:
    """`document` is the outputSchema of a tool, one that was found to be usable."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schema = Schema(document, linear=True)
        try:
            self._schema.check()
            self._most = MOST_WORK // max(Weighing(document).cost(document), 1)
        except ToolreeveError:  # only an engine that may take for ever understands its patterns
            self._most = -1

    def broken_by(self, structured: Any) -> str:
        """How an answer's structuredContent is not what was promised; nothing where it is."""
        if structured is None:
            return "the answer has no structuredContent, and the tool's outputSchema promises one"
        if weigh(structured, self._most) > self._most:
            return "the answer's structuredContent cannot be checked against the tool's outputSchema in reasonable time"
        if self._schema.accepts(structured):
            return ""
        remark = f"the answer's structuredContent does not fit the tool's outputSchema: {self._problems(structured)}"
        return one_line(remark)[:LONGEST_REMARK]

    def _problems(self, structured: Any) -> str:
        try:
            return "; ".join(map(str, self._schema.problems(structured, MOST_PROBLEMS)))
        except ValueError:
            return "it is nested too deeply"


def weigh(value: Any, most: int) -> int:
    """How much there is to look at; more than `most` need not be counted."""
    weight, left = 0, [value]
    while left and weight <= most:
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
