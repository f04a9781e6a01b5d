"""The list of all endpoints, and the OpenAPI document about them."""

from functools import cache
from typing import Any

from toolreeve.serve.api.activity import activity
from toolreeve.serve.api.agent_runs import agent_runs
from toolreeve.serve.api.approvals import approvals
from toolreeve.serve.api.audit import audit
from toolreeve.serve.api.calls import calls
from toolreeve.serve.api.endpoint import ApiRequest, Endpoint, Endpoints
from toolreeve.serve.api.events import events
from toolreeve.serve.api.openapi import new_document
from toolreeve.serve.api.policy import policy
from toolreeve.serve.api.policy_review import policy_review
from toolreeve.serve.api.servers import servers
from toolreeve.serve.api.system import system
from toolreeve.serve.api.tokens import tokens
from toolreeve.serve.api.tools import tools
from toolreeve.serve.api.webhooks import webhooks
from toolreeve.serve.api.workers import workers

about = Endpoints("about")


@about.get("/openapi.json")
async def show_openapi(request: ApiRequest) -> dict[str, Any]:  # noqa: ARG001
    """This API as an OpenAPI 3.1 document."""
    return document()


TOPICS = (
    about,
    system,
    tools,
    activity,
    calls,
    agent_runs,
    approvals,
    policy,
    policy_review,
    audit,
    servers,
    tokens,
    webhooks,
    workers,
    events,
)
"""Of two that match a path, the first one answers: `/calls/histogram` precedes `/calls/{call_id}`."""
ENDPOINTS: tuple[Endpoint, ...] = tuple(endpoint for topic in TOPICS for endpoint in topic.found)


@cache
def document() -> dict[str, Any]:
    return new_document(ENDPOINTS)
