"""Permission modes of a session, from the freest to the tightest."""

from enum import Enum


class PermissionMode(Enum):
    """BYPASS allows all but the floor, PLAN allows reads only, DEFAULT asks from MEDIUM danger up, STRICT asks for
    everything and denies HIGH and CRITICAL unless a rule allows them."""

    BYPASS = "bypass"
    PLAN = "plan"
    DEFAULT = "default"
    STRICT = "strict"
