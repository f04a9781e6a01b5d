"""Action: a call with its resolved tool and validated arguments.

Policy, approval and record read it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.labels import FlowView
from toolreeve.core.tool import BoundTool, ToolSpec


class Action:
    """Effects are computed on first access: by a rule about effects, a prompt, or the record of a change.

    An untrusted server's claims about its own tools never make a call less dangerous than HIGH, nor read-only. After a
    trial (`tried`) the effects are the changes that were observed. `flow` is what is known about the flow of
    information into the call; None where there is no session to know it from.
    """

    __slots__ = ("_effects", "_files", "args", "call", "cost", "danger", "flow", "manifest", "spent", "tool", "tried")

    def __init__(self, call: ToolCall, tool: BoundTool, args: Mapping[str, Any], files: Files) -> None:
        self.call = call
        self.tool = tool
        self.args = args
        danger = tool.danger(args)
        self.danger: DangerLevel = danger if tool.spec.trusted else max(danger, DangerLevel.HIGH)
        self.cost = call.estimated_cost or tool.spec.estimated_cost
        self.spent = 0.0
        if not self.cost >= 0:  # not a number is refused as well
            raise ToolError(ErrorCode.INVALID_PARAMS, f"the estimated cost must be 0 or more, not {self.cost!r}")
        self.tried = False
        self.manifest = ""
        self.flow: FlowView | None = None
        self._files = files
        self._effects: Sequence[Effect] | None = None

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def root(self) -> str:
        """The workspace."""
        return self._files.root

    @property
    def read_only(self) -> bool:
        """Whether this very call changes nothing: the tool is read-only, or its arguments make the call SAFE."""
        spec = self.tool.spec
        if spec.read_only:
            return spec.trusted
        return not self.tried and self.tool.assess is not None and self.danger is DangerLevel.SAFE

    @property
    def effects(self) -> Sequence[Effect]:
        if self._effects is None:
            self._effects = self.tool.effects(self.args, self._files)
        return self._effects

    def observe(self, effects: Sequence[Effect] | None) -> None:
        """Record what was touched instead of looking its paths up again. A prediction that was decided upon stays."""
        if self._effects is None:
            self._effects = effects

    @property
    def recorded_effects(self) -> Sequence[Effect]:
        """The effects for the record, which must not fail on them nor block."""
        if self._effects is None and not self.tool.blocking:
            try:
                return self.effects
            except Exception:  # the tool's own code
                return ()
        return self._effects or ()

    async def load(self) -> None:
        """Compute the effects of a blocking tool in a thread, so that they are at hand on the event loop."""
        if self.tool.blocking and self._effects is None:
            self._effects = await asyncio.to_thread(self.tool.effects, self.args, self._files)

    async def again(self) -> "Action":
        """The same call with effects computed again, after a wait: its paths may lead elsewhere now. What was observed
        stays as it was."""
        if self.tried:
            return self
        action = Action(self.call, self.tool, self.args, self._files)
        action.flow = self.flow
        await action.load()
        return action

    def after_trial(self, changes: Sequence[Effect], manifest: str = "") -> "Action":
        """The same call with the changes that a trial made in place of its predicted effects. `manifest` is the digest
        of their content."""
        action = Action(self.call, self.tool, self.args, self._files)
        action.tried = True
        action.flow = self.flow
        action.manifest = manifest
        action._effects = tuple(changes)
        return action
