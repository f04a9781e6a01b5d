"""Answers hook events: judges the call, records it, then replies.

The configuration is read again when one of its files changed, so that a running server decides as a new one would.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolreeve.config import Configuration, load
from toolreeve.config.xdg import home
from toolreeve.core.call import LOCAL
from toolreeve.core.result import Failure
from toolreeve.core.verdict import Decision
from toolreeve.hook.client_tools import HARMLESS
from toolreeve.hook.events import cannot_ask, is_prompt, parse_event
from toolreeve.hook.judge import ClientRequest, Judge, JudgedCall, record_judged, strictest
from toolreeve.hook.questions import HookQuestions, Settled
from toolreeve.record.journal import Journal
from toolreeve.runtime.principal import find_local_principal

if TYPE_CHECKING:
    from toolreeve.information_flow.sessions import FlowSessions
    from toolreeve.record.pending import PendingStore

Answer = tuple[str, str]
"""allow, ask, deny or none, and the reason."""


def load_for_hook(workspace: str) -> Configuration:
    return load({"workspace.dir": workspace}, origin="hook")


class HookRecord(NamedTuple):
    """Where decisions, what users say, and questions are kept; the latter two are opened when they are needed."""

    journal: Journal
    flow: "Callable[[], FlowSessions]"
    questions: "Callable[[], PendingStore]"


class HookService:
    """`configuration` is that of now, if the caller has just loaded it."""

    def __init__(self, workspace: str, record: HookRecord, configuration: Configuration | None = None) -> None:
        self._workspace = workspace
        self._record = record
        self._judge: Judge | None = None
        self._seen: Mapping[str, Any] = {}
        if configuration is not None:
            self._use(configuration)

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    async def answer(self, client: str, raw: bytes, *, headless: bool = False) -> Answer:
        """Raises MalformedEvent, ConfigError, and ToolError if the call cannot be recorded."""
        event: dict[str, Any] = parse_event(client, raw)
        if is_prompt(client, event):
            await self._pass_on(client, event)
            return "none", ""
        if event["tool_name"] in HARMLESS or self._is_own(client, event):
            return "none", ""
        asked = ClientRequest(
            client=client,
            session=event["session_id"],
            tool=event["tool_name"],
            args=event["tool_input"],
            cwd=str(event.get("cwd") or "."),
        )
        judged = self._current().judge(asked)
        settled = await self._settle(asked, judged, files=cannot_ask(client, event, headless=headless))
        failure = None if settled.code is None else Failure(settled.code, settled.reason)
        for each in judged:
            await record_judged(self._record.journal, each, failure, approved_by=settled.approved_by)
        return settled.decision, settled.reason

    def _is_own(self, client: str, event: Mapping[str, Any]) -> bool:
        """Our own tools decide for themselves, when they are called."""
        if not event["tool_name"].startswith("mcp_"):
            return False
        from toolreeve.hook.own_server import is_own_tool

        cwd = str(event.get("cwd") or self._workspace)
        return is_own_tool(client, event["tool_name"], home=home(os.environ), workspace=self._workspace, cwd=cwd)

    async def _settle(self, asked: ClientRequest, judged: Sequence[JudgedCall], *, files: bool) -> Settled:
        verdict = strictest(judged)
        if verdict.decision is Decision.ASK:
            version = self._current().version
            questions = HookQuestions(self._record.questions())
            settled = await questions.settle(asked, judged, verdict, version=version, files=files)
        else:
            settled = Settled(verdict.decision.word, verdict.reason)
        is_person = settled.approved_by or settled.code is not None
        return (
            settled
            if is_person or not verdict.advice
            else replace(settled, reason=f"{settled.reason} {verdict.advice}")
        )

    def _current(self) -> Judge:
        """The judge of the configuration as it is now."""
        if self._judge is None or _signature(self._seen) != self._seen:
            self.close()
            return self._use(load_for_hook(self._workspace))
        return self._judge

    def _use(self, configuration: Configuration) -> Judge:
        self._judge = Judge(configuration, find_local_principal(configuration).for_agents)
        self._seen = _signature(configuration.governing)
        return self._judge

    async def _pass_on(self, client: str, event: Mapping[str, Any]) -> None:
        """What a subagent or a scheduled task submits was not typed by the user, and vouches for nothing."""
        text: str = event["prompt"]
        if not event.get("agent_id") and not text.lstrip().startswith("<"):
            by = f"{LOCAL.user} ({client})"
            await self._record.flow().say(text, user=LOCAL.user, session=event["session_id"], by=by)


def _signature(files: Any) -> dict[str, Any]:
    return {name: _stamp(name) for name in files}


def _stamp(name: str) -> tuple[int, int, int] | None:
    try:
        found = Path(name).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
