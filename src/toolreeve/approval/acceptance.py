"""Acceptance of an answer: checks that it fits, stores what it grants.

Only a strictly boolean yes to the very call that was asked is an approval. What cannot be stored holds once.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from toolreeve.approval.always_rule import AlwaysRule, until
from toolreeve.approval.grants import Grants
from toolreeve.approval.refusals import refused
from toolreeve.approval.request import Answer, Approval, Request, Scope, digest
from toolreeve.core.action import Action
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError

Remember = Callable[[AlwaysRule], Awaitable[str]]


class Acceptance:
    """`remember` writes the rule of an "always" and returns its location. Without `grants`, a yes for the session
    holds once."""

    def __init__(self, grants: Grants | None, remember: Remember | None) -> None:
        self._grants = grants
        self._remember = remember

    async def accept(self, action: Action, request: Request, answer: Answer, version: str) -> Approval:
        """Raises ToolError if the answer is no, or does not fit the call as it is now."""
        if answer.granted is not True:
            raise refused(request, answer)
        if digest(await action.again(), version=version, request=request.id) != request.digest:
            raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: the call changed while it was being approved")
        if not 0 <= answer.choice < len(request.choices):
            raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: the answer chose what was not offered")
        once = Approval(
            by=answer.by,
            scope=Scope.ONCE,
            note=answer.note,
            args=answer.args,
            digest=request.digest,
            only=answer.only,
            know=answer.know,
        )
        if answer.args is not None or answer.only is not None:
            return once  # grants are about the call that was asked and all that it changes
        once = replace(once, binding=request.binding)
        match answer.scope:
            case Scope.ONCE:
                return once
            case Scope.SESSION:
                return await self._grant(action, request, answer, version, once)
            case Scope.ALWAYS:
                return await self._write(until(request.choices[answer.choice].rule, answer.expires), once)

    async def _grant(self, action: Action, request: Request, answer: Answer, version: str, once: Approval) -> Approval:
        """If the grant cannot be stored, the approval holds once."""
        if self._grants is None:
            return once
        choice = request.choices[answer.choice] if answer.choice else None
        try:
            stored = await self._grants.add(
                action,
                version=version,
                by=answer.by,
                rule=None if choice is None else choice.rule,
                sentence="" if choice is None else choice.sentence,
                asked_by=request.verdict.rule,
                expires=answer.expires,
                uses=None if answer.uses is None else answer.uses - 1,
            )
        except ToolError as problem:
            return replace(once, problem=f"the grant could not be stored: {problem}")
        return replace(once, scope=Scope.SESSION) if stored else once

    async def _write(self, rule: AlwaysRule, once: Approval) -> Approval:
        """If the rule cannot be written, the approval holds once and carries the problem."""
        if self._remember is None:
            return replace(once, problem="no rule can be written here")
        try:
            return replace(once, scope=Scope.ALWAYS, remembered=await self._remember(rule))
        except (OSError, ToolreeveError) as problem:
            return replace(once, problem=f"the rule could not be written: {problem}")
