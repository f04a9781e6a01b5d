"""For tests of programs that use models: a scripted model that speaks the providers' real wire formats."""

from toolreeve.testing.model_server import ScriptedModel
from toolreeve.testing.script import Reply, Turn, break_off, call, fail, say

__all__ = ["Reply", "ScriptedModel", "Turn", "break_off", "call", "fail", "say"]
