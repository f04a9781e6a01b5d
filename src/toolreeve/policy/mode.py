"""How much may run without a person? The mode of a session, from the freest to the tightest."""

from enum import Enum


class PermissionMode(Enum):
    """BYPASS allows all but the floor, PLAN only reads, DEFAULT asks from MEDIUM danger on, STRICT asks for everything
    and denies HIGH and CRITICAL unless a rule speaks for them."""

    BYPASS = "bypass"
    PLAN = "plan"
    DEFAULT = "default"
    STRICT = "strict"
