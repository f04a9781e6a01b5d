"""Permission API: policy and approval by tool name, without a runtime.

Nothing here runs a tool: it returns a decision, and enforcing it is up to the caller.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolreeve.core.action import Action
from toolreeve.core.context import Context, Services
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.layers import decide
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import Budget, PolicyState, names
from toolreeve.policy.trial import decide_trial

if TYPE_CHECKING:
    from toolreeve.approval.channel import Channel
    from toolreeve.approval.channels.callback import Approve
    from toolreeve.policy.explanation import Explanation

__all__ = ["ApprovalManager", "ExecutionContext", "PermissionMode", "PermissionPolicy", "PermissionRule"]


class ExecutionContext:
    """The inputs of a policy decision. Every attribute may be changed at any time; the next check sees it."""

    def __init__(
        self,
        mode: PermissionMode = PermissionMode.DEFAULT,
        budget_limit: float | None = None,
        allowed_tools: Iterable[str] | None = None,
        denied_tools: Iterable[str] | None = None,
        rules: Sequence[PermissionRule] | None = None,
    ) -> None:
        self.mode = mode
        self.budget_limit = budget_limit
        self._budget = Budget(limit=0.0)
        self.allowed_tools = set(names(allowed_tools or ()))
        self.denied_tools = set(names(denied_tools or ()))
        self.rules = list(rules or ())

    @property
    def budget_used(self) -> float:
        """What has been spent; a runtime that uses this context keeps it current."""
        return self._budget.spent

    @budget_used.setter
    def budget_used(self, spent: float) -> None:
        self._budget.spent = spent

    def follow(self, budget: Budget) -> None:
        """From now on `budget_used` is what is spent of this budget."""
        self._budget = budget

    def snapshot(self) -> tuple[object, ...]:
        """All values as they are now, to notice a change."""
        return (
            self.mode,
            self.budget_limit,
            names(self.allowed_tools),
            names(self.denied_tools),
            tuple(self.rules),
        )


class PermissionPolicy:
    """The layers over an ExecutionContext. `root` is the workspace, by default the current directory: relative paths
    are taken from it. A runtime that is given the policy sets its own."""

    def __init__(
        self,
        context: ExecutionContext | None = None,
        *,
        root: str | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.context = context or ExecutionContext()
        self._root = root or str(Path.cwd())
        self._confinements: frozenset[Confinement] = frozenset()
        self._now = now
        self._snapshot: tuple[object, ...] = ()
        self._state = PolicyState()

    def __repr__(self) -> str:
        return f"<PermissionPolicy: {self.context.mode.value} mode, {len(self.context.rules)} rules>"

    def check_permission(
        self, tool_name: str, tool_input: Mapping[str, Any], estimated_cost: float = 0.0
    ) -> tuple[bool | None, str | None]:
        """(True, None) allows, (False, reason) denies, (None, None) says that a person must be asked."""
        try:
            action = self._action(tool_name, tool_input, estimated_cost)
            self._screen(action)
        except ToolError as refusal:
            return False, refusal.message
        verdict = self._decide(action)
        match verdict.decision:
            case Decision.ALLOW:
                return True, None
            case Decision.ASK:
                return None, None
            case Decision.DENY:
                return False, verdict.reason

    def explain(self, tool_name: str, tool_input: Mapping[str, Any], estimated_cost: float = 0.0) -> "Explanation":
        """The whole decision: verdict, rule, every layer's answer, and what would alter it."""
        from toolreeve.policy.explanation import explain, refused

        action = self._action(tool_name, tool_input, estimated_cost)
        explanation = explain(action, self.state())
        try:
            self._screen(action)
        except ToolError as refusal:
            return refused(explanation, refusal)
        return explanation

    def serve(self, *, root: str, confinements: Iterable[Confinement]) -> None:
        """Decide as in the workspace at `root`, where the sandbox enforces these confinements."""
        self._root = root
        self._confinements = frozenset(confinements)
        self._snapshot = ()

    def _action(self, tool: str, args: Mapping[str, Any], cost: float) -> Action:
        from toolreeve.policy.hypothetical import build_action

        return build_action(tool, args, root=self._root, cost=cost, home=str(Path.home()))

    def _screen(self, action: Action) -> None:
        """What the tool itself would refuse: programs that `execute_command` does not start."""
        if action.tool.screen is not None and "command" in action.args:
            action.tool.screen(action.args, Context(action.call, cast(Services, None)))

    def _decide(self, action: Action) -> Verdict:
        state = self.state()
        return decide_trial(action, decide(action, state), state)

    def state(self) -> PolicyState:
        """The context as the layers see it, compiled again only when it changed."""
        context = self.context
        snapshot = context.snapshot()
        if snapshot != self._snapshot:
            limit = context.budget_limit
            self._state = PolicyState.of(
                mode=context.mode,
                allowed_tools=context.allowed_tools,
                denied_tools=context.denied_tools,
                rules=context.rules,
                budget=None if limit is None else Budget(limit=limit),
                root=self._root,
                now=self._now,
                confinements=self._confinements,
            )
            self._snapshot = snapshot
        if self._state.budget is not None:
            self._state.budget.spent = context.budget_used
        return self._state


class ApprovalManager:
    """Asks people whether a tool may run. `approve` is a channel, or a function of the request."""

    def __init__(self, *approve: "Channel | Approve") -> None:
        from toolreeve.approval.channel import Channel
        from toolreeve.approval.channels.callback import CallbackChannel

        self._channels = [each if isinstance(each, Channel) else CallbackChannel(each) for each in approve]

    async def request_approval(
        self, tool_name: str, tool_input: Mapping[str, Any], context: ExecutionContext, timeout: float = 60.0
    ) -> bool:
        """True if a person approved exactly this call. A call that the context denies is not asked about. Raises
        PermissionError if no channel can ask."""
        from toolreeve.approval.broker import Broker
        from toolreeve.policy.hypothetical import build_action

        action = build_action(tool_name, tool_input)
        if decide(action, PermissionPolicy(context, now=time.time).state()).decision is Decision.DENY:
            return False
        asked = Verdict(Decision.ASK, "program", "The program asks before it goes on")
        try:
            approval = await Broker(self._channels, now=time.time, timeout=timeout).settle(action, asked)
        except ToolError as refusal:
            if refusal.code is ErrorCode.PERMISSION:
                raise PermissionError(refusal.message) from None
            return False
        return approval.args is None
