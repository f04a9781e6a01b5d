"""Endpoints of events: a resumable stream of server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, ValidationError
from starlette.responses import Response
from starlette.websockets import WebSocket

from toolreeve.core import json
from toolreeve.serve.api.call_rows import new_row
from toolreeve.serve.api.endpoint import SSE, ApiRequest, Endpoints, Query, invalid
from toolreeve.serve.api.problems import Problem
from toolreeve.serve.api.services import ApiServices
from toolreeve.serve.api.streams import event_stream, frame
from toolreeve.serve.api.visibility import RecordView
from toolreeve.serve.event_feed import EventPage, FedEvent, without_arguments
from toolreeve.serve.mcp.sdk_server import CREDENTIAL
from toolreeve.serve.tokens import AccessScope, Credential

events = Endpoints("events")
NAMES = {
    "approval_requested": "approval.requested",
    "approval_resolved": "approval.resolved",
    "approval_withdrawn": "approval.withdrawn",
    "server_up": "server.state",
    "server_away": "server.state",
    "tool_changed": "tool.changed",
    "policy_changed": "policy.changed",
    "record_gap": "chain.state",
    "tool_progress": "call.progress",
}
"""The names of events on the stream, besides those of `tool_execution`; other kinds keep their own."""


class EventQuery(Query):
    kinds: Annotated[str | None, Field(max_length=500, description="Only these kinds or names, with commas.")] = None
    task: Annotated[str | None, Field(max_length=100, description="Only events of this call.")] = None
    after: Annotated[int | None, Field(ge=0, le=2**62, description="As Last-Event-ID, for clients without it.")] = None


@events.get("/events", produces=(SSE,))
async def stream_events(request: ApiRequest, query: EventQuery) -> Response:
    """Stream events as they happen. `Last-Event-ID` continues after that event, from the record."""
    after = query.after if query.after is not None else _last_event_id(request)
    return event_stream(_frames(request.services, request.credential, query, after))


async def _frames(
    services: ApiServices, credential: Credential, query: EventQuery, after: int | None
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    selection = EventSelection(query, services.view_of(credential))
    with watching(services, credential):
        async for page in services.feed.listen(after):
            if found := selection.frames(page):
                yield found


async def serve_events(socket: WebSocket, services: ApiServices) -> None:
    """The same events over a WebSocket: `{"id", "name", …}` with the members of the envelope."""
    credential: Credential = socket.scope[CREDENTIAL]
    if AccessScope.READ not in credential.scopes:
        await socket.close(1008, "this needs the scope 'read'")
        return
    try:
        query = EventQuery.model_validate(dict(socket.query_params))
    except ValidationError as problem:
        await socket.close(1008, invalid(problem, "query", EventQuery).detail[:120])
        return
    await socket.accept()
    work = [asyncio.create_task(each) for each in (_send_events(socket, services, credential, query), _discard(socket))]
    await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    for each in work:
        each.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    with contextlib.suppress(RuntimeError):  # the client has closed it
        await socket.close()


async def _send_events(socket: WebSocket, services: ApiServices, credential: Credential, query: EventQuery) -> None:
    selection = EventSelection(query, services.view_of(credential))
    with watching(services, credential):
        async for page in services.feed.listen(query.after):
            for fed, visible in selection.select(page):
                told = {"id": fed.seq, "name": name_of(fed), **envelope_of(fed, visible=visible)}
                await socket.send_text(json.dumps(told).decode())


async def _discard(socket: WebSocket) -> None:
    """What a client sends is of no interest, but that it left is."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def watching(services: ApiServices, credential: Credential) -> AbstractContextManager[None]:
    """Someone who may approve calls sees questions as they come: calls wait for the answer."""
    return services.inbox.watched() if AccessScope.APPROVE in credential.scopes else nullcontext()


@dataclass(frozen=True, slots=True)
class EventSelection:
    """The events that a listener asked for, of those that it may know of."""

    query: EventQuery
    view: RecordView

    def select(self, page: EventPage) -> Sequence[tuple[FedEvent, bool]]:
        """The events, and whether the listener may see what each is about."""
        kinds = {each.strip() for each in self.query.kinds.split(",")} if self.query.kinds else None
        found = []
        for fed in page.events:
            if kinds is not None and not kinds & {name_of(fed), fed.event.event}:
                continue
            if self.query.task is not None and fed.event.task_id != self.query.task:
                continue
            about = _about(fed, self.view)
            if self.view.includes(about):
                found.append((fed, self.view.reveals(about)))
        return found

    def frames(self, page: EventPage) -> bytes:
        """As they are sent: made once for all listeners that get the same."""
        viewer = None if self.view.credential.sees_all else self.view
        key = (self.query.kinds, self.query.task, viewer)
        if (found := page.encoded.get(key)) is None:
            found = b"".join(frame_of(fed, visible=visible) for fed, visible in self.select(page))
            page.encoded[key] = found
        return found


def name_of(fed: FedEvent) -> str:
    if fed.event.event == "tool_execution":
        return "call.started" if fed.event.data.get("status") == "started" else "call.finished"
    return NAMES.get(fed.event.event, fed.event.event)


def frame_of(fed: FedEvent, *, visible: bool) -> bytes:
    """The event as it is sent; encoded once for all listeners."""
    if (found := fed.encoded.get(visible)) is None:
        found = frame(name_of(fed), envelope_of(fed, visible=visible), fed.seq)
        fed.encoded[visible] = found
    return found


def envelope_of(fed: FedEvent, *, visible: bool) -> dict[str, Any]:
    """The event, with the row of the call that it is about."""
    event = fed.event if visible else without_arguments(fed.event)
    envelope = event.to_dict()
    if fed.record is not None and fed.event.event == "tool_execution":
        envelope["data"]["row"] = new_row(fed.record, visible=visible)
    return envelope


def _about(fed: FedEvent, view: RecordView) -> Mapping[str, Any]:
    """User, session and workspace of the call. What is about no call, such as a server's state, is everybody's own."""
    data = fed.event.data
    if fed.record is not None and fed.record.call_id:
        return fed.record.body
    if fed.event.event.startswith("approval_"):
        return data.get("card") or {}
    if not fed.event.task_id:
        return {"user": view.credential.principal.user, "workspace": view.workspace}
    user = data.get("user")
    return {
        "workspace": view.workspace,  # transient events are of this process
        **(data.get("execution_context") or {}),
        "user": user.get("user") if isinstance(user, dict) else user,
    }


def _last_event_id(request: ApiRequest) -> int | None:
    shown = request.http.headers.get("last-event-id")
    if shown is None or shown == "":
        return None
    if not shown.isascii() or not shown.isdigit() or len(shown) > 18:
        raise Problem(422, f"Last-Event-ID must be the id of an event, not {shown!r:.100}")
    return int(shown)
