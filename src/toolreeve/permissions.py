"""Permission API: policy and approval by tool name, without a runtime.

Nothing here runs a tool: it returns a decision, and enforcing it is up to the caller.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolreeve.approval.broker import Broker
from toolreeve.approval.channel import Channel
from toolreeve.approval.channels.callback import Approve, CallbackChannel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.explanation import Explanation
from toolreeve.policy.explanation import explain as explain_action
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import Budget, PolicyState, names

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
        self.budget_used = 0.0
        self.allowed_tools = set(names(allowed_tools or ()))
        self.denied_tools = set(names(denied_tools or ()))
        self.rules = list(rules or ())

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
    """The layers over an ExecutionContext. Relative paths in rules are taken from `root`."""

    def __init__(
        self,
        context: ExecutionContext | None = None,
        *,
        root: str = "/",
        now: Callable[[], float] | None = None,
    ) -> None:
        self.context = context or ExecutionContext()
        self._root = root
        self._now = now
        self._snapshot: tuple[object, ...] = ()
        self._state = PolicyState()

    def check_permission(
        self, tool_name: str, tool_input: Mapping[str, Any], estimated_cost: float = 0.0
    ) -> tuple[bool | None, str | None]:
        """(True, None) allows, (False, reason) denies, (None, None) says that a person must be asked."""
        verdict = decide(build_action(tool_name, tool_input, root=self._root, cost=estimated_cost), self.state())
        match verdict.decision:
            case Decision.ALLOW:
                return True, None
            case Decision.ASK:
                return None, None
            case Decision.DENY:
                return False, verdict.reason

    def explain(self, tool_name: str, tool_input: Mapping[str, Any], estimated_cost: float = 0.0) -> Explanation:
        """The whole decision: verdict, rule, every layer's answer, and what would alter it."""
        return explain_action(build_action(tool_name, tool_input, root=self._root, cost=estimated_cost), self.state())

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
            )
            self._snapshot = snapshot
        if self._state.budget is not None:
            self._state.budget.spent = context.budget_used
        return self._state


class ApprovalManager:
    """Asks people whether a tool may run. `approve` is a channel, or a function of the request."""

    def __init__(self, *approve: Channel | Approve) -> None:
        self._channels = [each if isinstance(each, Channel) else CallbackChannel(each) for each in approve]

    async def request_approval(
        self, tool_name: str, tool_input: Mapping[str, Any], context: ExecutionContext, timeout: float = 60.0
    ) -> bool:
        """True if a person approved exactly this call. A call that the context denies is not asked about. Raises
        PermissionError if no channel can ask."""
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
