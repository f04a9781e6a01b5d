"""Judges the edited arguments of a question, before a person allows them.

The edited call is judged again when it runs: what is shown here decides nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from toolreeve.approval.request import Request
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.effects import FILE_EFFECTS, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.verdict import Decision
from toolreeve.policy.layers import decide
from toolreeve.policy.state import PolicyState
from toolreeve.registry import ToolRegistry

Preview = Callable[[Action], Awaitable[str]]


class EditJudge:
    def __init__(
        self, registry: ToolRegistry, files: Files, policy: Callable[[], PolicyState], preview: Preview
    ) -> None:
        self._registry = registry
        self._files = files
        self._policy = policy
        self._preview = preview

    async def __call__(self, request: Request, args: Mapping[str, Any]) -> Request:
        """The question about the edited call, with its own effects and change. Raises ToolError if the tool does not
        take the arguments, or the call is denied."""
        bound = self._registry.resolve(request.tool, hidden=True)
        valid = bound.input.parse(args)
        call = ToolCall(tool=request.tool, args=valid, principal=request.principal, session=request.session)
        action = Action(call, bound, valid, self._files)
        verdict = decide(action, self._policy())
        if verdict.decision is Decision.DENY:
            raise ToolError(ErrorCode.DENIED, f"the edited call is denied: {verdict.reason}")
        self._refuse_guarded(action)
        return replace(
            request,
            args={**{name: valid[name] for name in request.args if name in valid}, **valid},
            effects=tuple(action.effects),
            danger=action.danger,
            preview=await self._preview(action),
            lasting="",
            choices=(),
            defaults=(),
            facts={},
        )

    def _refuse_guarded(self, action: Action) -> None:
        for effect in action.effects:
            if effect.kind in FILE_EFFECTS:
                finding = self._files.explain(effect.target, change=effect.kind is not EffectKind.READ)
                if finding.decision == "deny":
                    raise ToolError(ErrorCode.DENIED, f"the edited call is denied: {finding.reason}")
