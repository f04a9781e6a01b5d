"""Permission modes of a session, from the freest to the tightest."""

from enum import Enum


class PermissionMode(Enum):
    """BYPASS allows all but the floor, PLAN allows reads only, DEFAULT asks from MEDIUM danger up, ACCEPT_EDITS does so
    too but for changes inside the workspace that can be undone, STRICT asks for everything and denies HIGH and CRITICAL
    unless a rule allows them."""

    BYPASS = "bypass"
    PLAN = "plan"
    DEFAULT = "default"
    ACCEPT_EDITS = "accept_edits"
    STRICT = "strict"

    @property
    def title(self) -> str:
        """The name of the mode in messages."""
        return self.value.capitalize().replace("_", "-")
