"""Declaration of endpoints: a signature gives routing, validation and OpenAPI.

A handler is an async function of an `ApiRequest`, of the variables in its path, and of `query` and `body`, which are
models. What it returns is sent as JSON, unless it is a response; then `returns` gives the type. No scope is implied:
only reading has a default.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from toolreeve.core import json
from toolreeve.serve.api.problems import Problem
from toolreeve.serve.tokens import AccessScope, Credential

if TYPE_CHECKING:
    from toolreeve.serve.api.services import ApiServices
    from toolreeve.serve.api.visibility import RecordView

MAX_BODY_BYTES = 4 * 1024 * 1024
SSE = "text/event-stream"

Handler = Callable[..., Awaitable[Any]]
Method = Literal["GET", "POST", "PUT", "DELETE"]


class Query(BaseModel):
    """The query of a request. Unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Body(BaseModel):
    """The JSON body of a request. Unknown fields and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request with its credential, and what endpoints may use."""

    http: Request
    services: "ApiServices"
    credential: Credential

    @property
    def view(self) -> "RecordView":
        """What of the record it may see."""
        return self.services.view_of(self.credential)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`produces` are the media types of a response that is never JSON; `streams` says that a client may ask for the
    same as server-sent events. `statuses` are the types of successes with another status than 200."""

    method: Method
    path: str
    tag: str
    scope: AccessScope
    handler: Handler
    query: type[Query] | None
    body: type[Body] | None
    result: Any
    variables: Mapping[str, Any]
    produces: Sequence[str] = ()
    streams: bool = False
    statuses: Mapping[int, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or "").split("\n\n")[0].replace("\n", " ")

    async def answer(self, request: ApiRequest) -> Response:
        """Raises Problem."""
        values: dict[str, Any] = {name: request.http.path_params[name] for name in self.variables}
        if self.query is not None:
            values["query"] = parse_query(self.query, request.http)
        elif request.http.url.query:
            raise Problem(422, "this endpoint takes no query parameters")
        if self.body is not None:
            values["body"] = await read_body(self.body, request.http)
        found = await self.handler(request, **values)
        if isinstance(found, Response):
            return found
        return Response(status_code=204) if found is None else json_response(found)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of one topic."""

    tag: str
    found: list[Endpoint] = field(default_factory=list)

    def get(self, path: str, scope: AccessScope = AccessScope.READ, **more: Any) -> Callable[[Handler], Handler]:
        return self._declare("GET", path, scope, more)

    def post(self, path: str, scope: AccessScope, **more: Any) -> Callable[[Handler], Handler]:
        return self._declare("POST", path, scope, more)

    def put(self, path: str, scope: AccessScope, **more: Any) -> Callable[[Handler], Handler]:
        return self._declare("PUT", path, scope, more)

    def delete(self, path: str, scope: AccessScope, **more: Any) -> Callable[[Handler], Handler]:
        return self._declare("DELETE", path, scope, more)

    def _declare(
        self, method: Method, path: str, scope: AccessScope, more: Mapping[str, Any]
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            hints = get_type_hints(handler)
            annotated = hints.pop("return", None)
            query = hints.pop("query", None)
            body = hints.pop("body", None)
            variables = {name: hints[name] for name in list(hints)[1:]}
            self.found.append(
                Endpoint(
                    method=method,
                    path=path,
                    tag=self.tag,
                    scope=scope,
                    handler=handler,
                    query=query,
                    body=body,
                    result=more.get("returns", annotated),
                    variables=variables,
                    **{name: value for name, value in more.items() if name != "returns"},
                )
            )
            return handler

        return declare


def json_response(value: Any, status: int = 200, media_type: str = "application/json", **headers: str) -> Response:
    return Response(json.dumps(value), status, headers, media_type)


def parse_query(model: type[Query], http: Request) -> Query:
    """Raises Problem for a parameter that is unknown, invalid or given twice."""
    given = http.query_params.multi_items()
    names = [name for name, _ in given]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Problem(422, f"the query parameter {twice!r:.100} is given more than once")
    try:
        return model.model_validate(dict(given))
    except ValidationError as problem:
        raise invalid(problem, "query", model) from None


async def read_body(model: type[Body], http: Request) -> Body:
    """Raises Problem for a body that is too large, of another media type, no JSON, or no such model."""
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, f"the content type must be application/json, not {kind!r:.100}")
    data = await read_bounded(http)
    try:
        value = json.loads(data)
    except ValueError as problem:
        raise Problem(400, f"the body is not JSON: {problem}") from None
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        raise invalid(problem, "body", model) from None


async def read_bounded(http: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """The body, as long as it is within the limit. Raises Problem(413) before the rest is read."""
    too_large = Problem(413, f"the body exceeds {limit:,} bytes")
    length = http.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise too_large
    data = bytearray()
    async for chunk in http.stream():
        data += chunk
        if len(data) > limit:
            raise too_large
    return bytes(data)


def invalid(problem: ValidationError, part: str, model: type[BaseModel]) -> Problem:
    """Names every field that is wrong, and those that are known for one that is not."""
    errors = problem.errors(include_url=False, include_context=False, include_input=False)
    unknown = f"is unknown; known are {', '.join(model.model_fields)}"
    fields = [
        {
            "field": ".".join(map(str, each["loc"])),
            "problem": unknown if each["type"] == "extra_forbidden" and len(each["loc"]) == 1 else each["msg"],
        }
        for each in errors[:20]
    ]
    first = "; ".join(f"{each['field'] or part}: {each['problem']}" for each in fields[:5])
    return Problem(422, f"the {part} is not valid: {first}"[:2000], fields=fields)
