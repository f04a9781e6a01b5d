"""Sliding-window rate limit: state in, state and wait out.

Pure. At most `calls` in *any* window of `per` seconds, bursts included: a leaky bucket would admit nearly twice as many
at the edge of two windows. Up to `EXACT` calls, each is stored; above that, calls in the same 64th of the window are
counted together under the time of the last of them, which can make a caller wait a little longer, never shorter.
"""

import struct
from collections.abc import Sequence

from toolreeve.core.limits import RateLimit

EXACT = 64
_MARK = struct.Struct("<dI")
# A wait is rounded up by more than a wall clock's float can lose, so that a caller that waits is then admitted.
_SLACK = 1e-6

Marks = Sequence[tuple[float, int]]


def admit(state: bytes, now: float, limit: RateLimit) -> tuple[bytes, float]:
    """The new state, and the seconds to wait: 0.0 when the call is admitted."""
    marks = _recent(_unpack(state), now, limit.per)
    if sum(count for _, count in marks) >= limit.calls:
        return _pack(marks), _wait(marks, now, limit)
    return _pack(_marked(marks, now, limit)), 0.0


def _recent(marks: Marks, now: float, per: float) -> list[tuple[float, int]]:
    """Marks inside the window. One more than a window ahead means the clock was set back: it counts from now."""
    return [(now if at > now + per else at, count) for at, count in marks if at + per > now]


def _wait(marks: Marks, now: float, limit: RateLimit) -> float:
    """Until enough of the oldest marks have left the window; a limit of zero calls never admits any."""
    excess = sum(count for _, count in marks) - limit.calls + 1
    for at, count in sorted(marks):
        excess -= count
        if excess <= 0:
            return at + limit.per - now + _SLACK
    return float("inf")


def _marked(marks: Marks, now: float, limit: RateLimit) -> Marks:
    if marks and limit.calls > EXACT:
        at, count = marks[-1]
        grain = limit.per / EXACT
        if at // grain == now // grain:
            return [*marks[:-1], (max(at, now), count + 1)]
    return [*marks, (now, 1)]


def _pack(marks: Marks) -> bytes:
    return b"".join(_MARK.pack(at, count) for at, count in marks)


def _unpack(state: bytes) -> Marks:
    return list(_MARK.iter_unpack(state))
