"""Output store: keeps long results in memory, to be read on.

A result belongs to the user and the session of its call, and is shown to no other. The store is bounded: the oldest
results are dropped first.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from toolreeve.core.call import RecordScope, ToolCall
from toolreeve.core.context import KeptOutput
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result_text import TextLimit

MOST_CHARS = 32 * 1024 * 1024
MOST_PER_SESSION = 8 * 1024 * 1024
MOST_RESULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    user: str
    session: str
    output: KeptOutput


class OutputStore:
    """`chars` is how much of a result is shown at once."""

    def __init__(self, chars: int) -> None:
        self.chars = chars
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def limit_for(self, call: ToolCall) -> TextLimit:
        return TextLimit(self.chars, partial(self._keep, call))

    def _keep(self, call: ToolCall, text: str, labels: Sequence[str]) -> Callable[[int], str]:
        self._kept.pop(call.id, None)
        output = KeptOutput(text=text[:MOST_PER_SESSION], labels=tuple(labels))
        self._kept[call.id] = _Kept(user=call.principal.user, session=call.session, output=output)
        self._drop_oldest(call.session)
        return lambda offset: f'read_output(call_id="{call.id}", offset={offset})'

    def read(self, call: ToolCall, call_id: str) -> KeptOutput:
        """Raises ToolError if nothing is kept of that call for this caller."""
        kept = self._kept.get(call_id)
        if kept is None or not _may_read(call, kept):
            raise ToolError(
                ErrorCode.INVALID_PARAMS,
                f"/call_id: no output of {call_id[:100]!r} is kept for this session; only results that were cut are,"
                " and the oldest are dropped",
            )
        return kept.output

    def _drop_oldest(self, session: str) -> None:
        sizes = [(each.session, len(each.output.text)) for each in self._kept.values()]
        total = sum(size for _, size in sizes)
        own = sum(size for name, size in sizes if name == session)
        for call_id, kept in list(self._kept.items()):
            over = total > MOST_CHARS or len(self._kept) > MOST_RESULTS
            if not over and own <= MOST_PER_SESSION:
                return
            if over or kept.session == session:
                del self._kept[call_id]
                total -= len(kept.output.text)
                own -= len(kept.output.text) if kept.session == session else 0


def _may_read(call: ToolCall, kept: _Kept) -> bool:
    match call.sees:
        case RecordScope.ALL:
            return True
        case RecordScope.USER:
            return kept.user == call.principal.user
        case RecordScope.SESSION:
            return kept.user == call.principal.user and kept.session == call.session
