"""The list of all endpoints, and the OpenAPI document about them."""

from functools import cache
from typing import Any

from toolreeve.serve.api.activity import activity
from toolreeve.serve.api.calls import calls
from toolreeve.serve.api.endpoint import ApiRequest, Endpoint, Endpoints
from toolreeve.serve.api.events import events
from toolreeve.serve.api.openapi import new_document
from toolreeve.serve.api.system import system
from toolreeve.serve.api.tools import tools

about = Endpoints("about")


@about.get("/openapi.json")
async def show_openapi(request: ApiRequest) -> dict[str, Any]:  # noqa: ARG001
    """This API as an OpenAPI 3.1 document."""
    return document()


ENDPOINTS: tuple[Endpoint, ...] = tuple(
    endpoint for topic in (about, system, tools, activity, calls, events) for endpoint in topic.found
)


@cache
def document() -> dict[str, Any]:
    return new_document(ENDPOINTS)
