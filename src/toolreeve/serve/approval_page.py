"""The page behind a signed link: shown by GET, decided by POST.

A link preview, a scanner or a prefetch only opens it, which decides nothing. The holder of the link may answer, once,
and for this call only. The page has no script.
"""

from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from toolreeve.approval.decision import Decided, describe
from toolreeve.approval.links import BadLink
from toolreeve.core import json
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.visible import visible
from toolreeve.serve.console_files import security_headers

if TYPE_CHECKING:
    from toolreeve.runtime.approvals import Approvals

PATH = "/approve/{token}"
MAX_FORM = 16_384
_HEADERS = {"cache-control": "no-store", "referrer-policy": "same-origin"}
"""With no-referrer a browser sends the form with `Origin: null`, which is refused."""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>Toolreeve</title></head><body><main>{}</main></body></html>
"""
_FORM = """<form method="post"><p><label>Note for the agent, if you deny it<br>
<input name="note" maxlength="1000" size="40"></label></p>
<p><button name="answer" value="deny">Deny</button>
<button name="answer" value="allow">Allow once</button></p></form>"""


class ApprovalPage:
    def __init__(self, approvals: "Approvals") -> None:
        self._approvals = approvals

    def routes(self) -> list[BaseRoute]:
        return [Route(PATH, self.show, methods=["GET"]), Route(PATH, self.decide, methods=["POST"])]

    async def show(self, request: Request) -> Response:
        try:
            card = await self._approvals.open_link(request.path_params["token"])
        except (BadLink, ToolreeveError) as problem:
            return _page(f"<h1>{escape(str(problem))}</h1>", 403)
        if card is None:
            return _page("<h1>This question is no longer there.</h1>", 404)
        return _page(_describe(card))

    async def decide(self, request: Request) -> Response:
        form = parse_qs((await _read(request)).decode(errors="replace"))
        answer = form.get("answer", [""])[0]
        note = form.get("note", [""])[0][:1000]
        try:
            outcome = await self._approvals.decide_by_link(request.path_params["token"], answer=answer, note=note)
        except (BadLink, ToolreeveError) as problem:
            return _page(f"<h1>{escape(str(problem))}</h1>", 403)
        if isinstance(outcome, Decided):
            return _page(f"<h1>{'Allowed, this once.' if answer == 'allow' else 'Denied.'}</h1>")
        return _page(f"<h1>Your answer did not count: {escape(describe(outcome))}</h1>", 409)


def _describe(card: dict[str, Any]) -> str:
    rows = {
        "danger": card["danger"],
        "asked because": card["why"],
        "by": f"{card['user']} through {card['client']}",
        "in": card["workspace"],
        **{f"argument {name}": value for name, value in card["args"].items()},
    }
    found = "".join(f"<dt>{_shown(name)}</dt><dd><pre>{_shown(value)}</pre></dd>" for name, value in rows.items())
    changes = "".join(f"<pre>{_shown(each['diff'])}</pre>" for each in card["files"] if each.get("diff"))
    ending = _FORM if card["state"] == "pending" else f"<p>This question is {_shown(card['state'])}.</p>"
    return f"<h1>{_shown(card['sentence'])}</h1><dl>{found}</dl>{changes}{ending}"


def _shown(value: Any) -> str:
    """The whole value, with hidden characters spelled out."""
    text = value if isinstance(value, str) else json.pretty(value)
    return escape(visible(text))


async def _read(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_FORM:
            return b""
    return bytes(data)


def _page(body: str, status: int = 200) -> Response:
    headers = {**security_headers(), **_HEADERS}
    return HTMLResponse(_PAGE.format(body), status, headers)
