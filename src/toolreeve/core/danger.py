"""Danger levels: an ordered scale that policy reads."""

from enum import Enum


class DangerLevel(Enum):
    """SAFE reads, LOW mutates harmlessly, MEDIUM writes, HIGH destroys or executes, CRITICAL cannot be undone."""

    SAFE = "safe"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    rank: int

    def __lt__(self, other: "DangerLevel") -> bool:
        return self.rank < other.rank

    def __le__(self, other: "DangerLevel") -> bool:
        return self.rank <= other.rank

    def __gt__(self, other: "DangerLevel") -> bool:
        return self.rank > other.rank

    def __ge__(self, other: "DangerLevel") -> bool:
        return self.rank >= other.rank


for _rank, _level in enumerate(DangerLevel):
    _level.rank = _rank
