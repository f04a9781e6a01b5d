"""Endpoints of agent runs: what our agent was asked and did.

A conversation holds arguments and results: only those who may see everybody's calls read it.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.config.os_user import os_user_name
from toolreeve.core import json
from toolreeve.serve.api.endpoint import ApiRequest, Endpoints, Query
from toolreeve.serve.api.problems import not_found
from toolreeve.serve.tokens import AccessScope

agent_runs = Endpoints("agent runs")


class AgentRunSummary(TypedDict):
    """`stop` says why it ended; it is empty while the run goes on, or if its process died."""

    id: str
    user: str
    workspace: str
    session: str
    model: str
    question: str
    began: float
    ended: float | None
    stop: str
    steps: int
    cost: float


class AgentRunList(TypedDict):
    runs: list[AgentRunSummary]


class AgentCall(TypedDict):
    id: str
    name: str
    args: dict[str, Any]


class AgentAnswer(TypedDict):
    """`call_id` is the call on record; it is empty if nothing ran. `labels` tell where the result came from."""

    id: str
    name: str
    text: str
    is_error: bool
    call_id: NotRequired[str]
    labels: NotRequired[list[str]]


class AgentMessage(TypedDict):
    """`at` is when it was recorded. A tool's message answers all calls of the turn before."""

    role: Literal["user", "assistant", "tool"]
    at: NotRequired[float]
    text: NotRequired[str]
    calls: NotRequired[list[AgentCall]]
    answers: NotRequired[list[AgentAnswer]]


class AgentRunDetail(AgentRunSummary):
    messages: list[AgentMessage]


class AgentRunQuery(Query):
    limit: Annotated[int, Field(ge=1, le=500)] = 50


@agent_runs.get("/runs", AccessScope.APPROVE)
async def list_runs(request: ApiRequest, query: AgentRunQuery) -> AgentRunList:
    """The runs of Toolreeve's own agent by the user of this server, newest first."""
    table = request.services.reeve.internals.store.agent_runs
    rows: Any = [asdict(each) for each in await table.recent(os_user_name(), query.limit)]
    return {"runs": rows}


@agent_runs.get("/runs/{number}", AccessScope.APPROVE)
async def show_run(request: ApiRequest, number: str) -> AgentRunDetail:
    """Show a run: the whole conversation, with the calls that were made."""
    table = request.services.reeve.internals.store.agent_runs
    row = next((each for each in await table.find(os_user_name(), number) if each.id == number), None)
    if row is None:
        raise not_found(f"no agent run {number!r:.100}")
    messages = [json.loads(body) for body in await table.messages(row.id)]
    shown: Any = [{key: each[key] for key in AgentMessage.__annotations__ if key in each} for each in messages]
    found: Any = {**asdict(row), "messages": shown}
    run: AgentRunDetail = found
    return run
