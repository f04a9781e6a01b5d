"""For tests of programs with models: a scripted model."""

from toolreeve.testing.model_server import ScriptedModel
from toolreeve.testing.script import Reply, Turn, break_off, call, fail, refuse, say

__all__ = ["Reply", "ScriptedModel", "Turn", "break_off", "call", "fail", "refuse", "say"]
