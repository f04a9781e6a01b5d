"""What does a text really hold? As people who are asked for approval see it; the rule itself is everybody's."""

from toolreeve.core.visible import MAX_MARKS, one_line, visible

__all__ = ["MAX_MARKS", "one_line", "visible"]
