"""Answers permission requests of an agent: policy, automatic approval, people.

Always for once: a yes for longer is kept on our side. A call that comes to us afterwards, because the agent can make it
in no other way, is decided then; here it is only denied.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.acp.client.permission_calls import declared_name, read_calls, tool_name
from toolreeve.acp.client.profiles import READ, SHELL, WRITE, AgentProfile
from toolreeve.acp.client.road import Road
from toolreeve.approval.options import choose_option, outcome_of, read_option
from toolreeve.core.errors import ToolError
from toolreeve.core.result import Failure
from toolreeve.core.verdict import Decision
from toolreeve.hook.client_tools import ClientCall
from toolreeve.hook.judge import ClientRequest, Judge, JudgedCall, record_judged, strictest

_ROUTES = {"read_file": READ, "write_file": WRITE, "edit_file": WRITE, "bash": SHELL}


class Permissions:
    """`routes` are what the agent can do only through us. `own_server` is the name of our tools in its session; they
    are decided when they are called."""

    def __init__(self, road: Road, judge: Judge, profile: AgentProfile, *, own_server: str) -> None:
        self._road = road
        self._judge = judge
        self._profile = profile
        self._own_server = own_server

    async def answer(self, call: Mapping[str, Any], options: Any, *, cwd: str) -> tuple[dict[str, Any], str]:
        """The outcome, and why the call was refused; empty if it was allowed."""
        offered = [read_option(each) for each in options if isinstance(each, dict)] if isinstance(options, list) else []
        refusal = await self._refusal(call, cwd)
        chosen = choose_option(offered, granted=not refusal)
        if chosen is None and not refusal:
            refusal = "the agent offers no option that allows a call once"
            chosen = choose_option(offered, granted=False)
        return {"outcome": outcome_of(chosen)}, refusal

    async def _refusal(self, call: Mapping[str, Any], cwd: str) -> str:
        if self._is_our_tool(call):
            return ""
        calls = read_calls(call, self._profile, cwd=cwd)
        request = ClientRequest(
            client=self._road.client, session=self._road.session, tool="", args={}, cwd=cwd, origin="acp"
        )
        judged = await asyncio.to_thread(self._judge.judge_calls, calls, request)
        verdict = strictest(judged)
        if verdict.decision is Decision.DENY:
            await self._record(judged)
            return verdict.reason
        if self._comes_to_us(calls):
            return ""
        return await self._settle(judged)

    def _is_our_tool(self, call: Mapping[str, Any]) -> bool:
        """A title counts only for an agent that can do nothing else under that name."""
        name = tool_name(call) if self._profile.routes else declared_name(call)
        return bool(self._own_server) and self._own_server in name

    def _comes_to_us(self, calls: Sequence[ClientCall]) -> bool:
        return all(_ROUTES.get(each.tool) in self._profile.routes for each in calls)

    async def _settle(self, judged: Sequence[JudgedCall]) -> str:
        """Ask about each call that policy does not allow by itself. The first refusal counts."""
        for each in judged:
            try:
                if each.verdict.decision is Decision.ASK:
                    each.action.call.peer = self._road.peer
                    await self._road.reeve.internals.ask(each.action, each.verdict)
            except ToolError as refusal:
                await record_judged(self._road.reeve.internals.journal, each, Failure(refusal.code, refusal.message))
                return refusal.message
            await record_judged(self._road.reeve.internals.journal, each)
        return ""

    async def _record(self, judged: Sequence[JudgedCall]) -> None:
        for each in judged:
            await record_judged(self._road.reeve.internals.journal, each)
