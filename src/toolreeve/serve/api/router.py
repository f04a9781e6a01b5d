"""The API's router: access by scope, endpoint, problem details.

Nothing an endpoint does can be reached without its scope. A browser's change needs its CSRF token and an Origin.
"""

import hmac
import logging
from collections.abc import Sequence

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.serve.api.endpoint import ApiRequest, Endpoint
from toolreeve.serve.api.problems import Problem, not_found, problem_of, problem_response
from toolreeve.serve.api.services import ApiServices
from toolreeve.serve.mcp.sdk_server import CREDENTIAL
from toolreeve.serve.tokens import Credential

PREFIX = "/api/v1"
CSRF_HEADER = "x-csrf-token"
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

_logger = logging.getLogger(__name__)


class ApiRouter:
    """An ASGI application for everything under `PREFIX`."""

    def __init__(self, endpoints: Sequence[Endpoint], services: ApiServices) -> None:
        self._services = services
        self._endpoints = endpoints
        self._routes = [self._route(each) for each in endpoints]

    def routes(self) -> list[BaseRoute]:
        return [*self._routes, Route(f"{PREFIX}/{{rest:path}}", self._unknown, methods=_METHODS)]

    def alias(self, path: str, of: str) -> Route:
        """A second path for a GET."""
        return self._route(next(each for each in self._endpoints if (each.path, each.method) == (of, "GET")), path)

    def _route(self, endpoint: Endpoint, path: str = "") -> Route:
        async def answer(http: Request) -> Response:
            return await self._answer(endpoint, http)

        return Route(path or f"{PREFIX}{endpoint.path}", answer, methods=[endpoint.method], name=endpoint.name)

    async def _answer(self, endpoint: Endpoint, http: Request) -> Response:
        credential: Credential = http.scope[CREDENTIAL]
        try:
            check_scope(endpoint, credential)
            check_csrf(http, credential)
            response = await endpoint.answer(ApiRequest(http, self._services, credential))
        except Problem as problem:
            response = problem_response(problem)
        except ToolError as error:
            response = problem_response(problem_of(error))
        except ToolreeveError as misuse:
            response = problem_response(Problem(422, str(misuse)))
        except ClientDisconnect:
            raise
        except Exception:
            _logger.exception("%s %s failed", http.method, endpoint.path)
            response = problem_response(
                Problem(500, "an internal error; the server's log has it", code=ErrorCode.TOOL_EXEC)
            )
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    async def _unknown(self, http: Request) -> Response:
        """Another method of a known path is 405, everything else 404."""
        allowed = sorted(
            method
            for route in self._routes
            if route.matches({**http.scope, "type": "http"})[0] is Match.PARTIAL
            for method in route.methods or ()
            if method != "HEAD"
        )
        if allowed:
            problem = Problem(405, f"{http.method} is not allowed here; allowed: {', '.join(allowed)}")
            return problem_response(problem, {"allow": ", ".join(allowed)})
        return problem_response(
            not_found(f"there is no {http.url.path!r:.200}", suggestions=[f"{PREFIX}/openapi.json"])
        )


_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]


def check_scope(endpoint: Endpoint, credential: Credential) -> None:
    """Raises Problem."""
    if endpoint.scope not in credential.scopes:
        held = ", ".join(sorted(credential.scopes))
        raise Problem(
            403,
            f"this needs the scope {endpoint.scope.value!r}; the credential has: {held}",
            code=ErrorCode.PERMISSION,
            suggestions=(
                "open the console with the link that `toolreeve serve` printed",
                f"toolreeve tokens add --scope {endpoint.scope.value} …",
            ),
        )


def check_csrf(http: Request, credential: Credential) -> None:
    """Raises Problem for a change in the name of a browser's session that its own page did not make."""
    if not credential.csrf or http.method in ("GET", "HEAD"):
        return
    shown = http.headers.get(CSRF_HEADER, "")
    if "origin" not in http.headers or not hmac.compare_digest(shown.encode(), credential.csrf.encode()):
        raise Problem(
            403,
            f"a browser's change needs its Origin and the header {CSRF_HEADER}, with the value of GET {PREFIX}/session",
            code=ErrorCode.PERMISSION,
        )
