"""Web page tools. Every response is untrusted.

Pages are parsed, never run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.http import HttpReply, HttpRequest
from toolreeve.core.labels import UNTRUSTED
from toolreeve.core.result import Output
from toolreeve.core.threads import run_interruptibly
from toolreeve.core.tool import tool
from toolreeve.core.urls import parse_url
from toolreeve.tools.http import MAX_TIMEOUT, TIMEOUT, network_effects, object_schema, readable

MAX_LINKS = 5000
_WORTH_A_THREAD = 64 * 1024


@tool(
    danger=DangerLevel.SAFE,
    category="web",
    effects=network_effects,
    timeout=MAX_TIMEOUT + 5,
    inline=True,
    source="toolreeve",
    input_schema=object_schema(
        ["url"],
        url={"type": "string", "description": "An http:// or https:// URL."},
        timeout=TIMEOUT,
        user_agent={"type": ["string", "null"], "default": None, "description": "The User-Agent to send."},
        format={
            "enum": ["raw", "text", "markdown"],
            "default": "raw",
            "description": "raw: unchanged; text or markdown: an HTML page made readable.",
        },
    ),
)
async def fetch_url(
    ctx: Context, url: str, timeout: float | None = None, user_agent: str | None = None, format: str = "raw"
) -> Output:
    """Fetch a web page or file and return its content: unchanged, or an HTML page as plain text or Markdown."""
    reply = await _fetch(ctx, url, timeout, user_agent)
    source, encoding = readable(reply.body, reply.content_type, cut=reply.truncated)
    data: dict[str, Any] = {
        "content": source,
        "status_code": reply.status,
        "content_type": reply.content_type,
        "size": len(reply.body),
        "url": reply.url,
        "encoding": encoding,
    }
    if reply.truncated:
        data["next"] = f"http_get(url={reply.url!r}, headers={{'Range': 'bytes={len(reply.body)}-'}})"
    if encoding == "text" and _is_html(reply, source):
        await _render(data, source, format)
    return Output(data=data, main=data["content"], truncated="next" in data, labels=UNTRUSTED)


async def _render(data: dict[str, Any], source: str, format: str) -> None:
    from toolreeve.tools.html import MAX_INPUT, html_to_text, title_of
    from toolreeve.tools.markdown import html_to_markdown

    data["title"] = title_of(source)
    if format == "raw":
        return
    render = html_to_text if format == "text" else html_to_markdown
    data["content"] = await _work(source, lambda: render(source, data["url"]))
    if len(source) > MAX_INPUT:
        data["next"] = f"fetch_url(url={data['url']!r}, format='raw')"


def _link_effects(args: Mapping[str, Any], files: Files) -> Sequence[Effect]:
    return network_effects(args, files) if args.get("url") else ()


@tool(
    danger=DangerLevel.SAFE,
    category="web",
    effects=_link_effects,
    timeout=MAX_TIMEOUT + 5,
    inline=True,
    source="toolreeve",
    input_schema=object_schema(
        [],
        html={"type": ["string", "null"], "default": None, "description": "The HTML text."},
        url={"type": ["string", "null"], "default": None, "description": "Or the page to fetch."},
        base_url={"type": ["string", "null"], "default": None, "description": "The base of relative links."},
        timeout=TIMEOUT,
    ),
)
async def extract_links(
    ctx: Context,
    html: str | None = None,
    url: str | None = None,
    base_url: str | None = None,
    timeout: float | None = None,
) -> Output:
    """List the links of an HTML text or of a page at a URL, in order, made absolute."""
    from toolreeve.tools.html import links_of

    if (html is None) == (url is None):
        raise ToolError(ErrorCode.INVALID_PARAMS, "give exactly one of /html and /url")
    base = parse_url(base_url).url if base_url else ""
    source = html or ""
    cut = False
    if url is not None:
        reply = await _fetch(ctx, url, timeout, None)
        source, _ = readable(reply.body, reply.content_type, cut=reply.truncated)
        base = base or reply.url
        cut = reply.truncated
    found = await _work(source, lambda: links_of(source, base, MAX_LINKS + 1))
    links = found[:MAX_LINKS]
    data = {"links": links, "count": len(links), "unique_links": list(dict.fromkeys(links))}
    return Output(data=data, main=links, truncated=cut or len(found) > MAX_LINKS, labels=UNTRUSTED)


async def _fetch(ctx: Context, url: str, timeout: float | None, user_agent: str | None) -> HttpReply:
    headers = {"user-agent": user_agent} if user_agent else {}
    return await ctx.http.send(HttpRequest(method="GET", url=url, headers=headers, timeout=timeout))


def _is_html(reply: HttpReply, source: str) -> bool:
    kind = reply.content_type.lower()
    if "html" in kind:
        return True
    return not kind and source[:512].lstrip().lower().startswith(("<!doctype html", "<html"))


async def _work(source: str, work: Any) -> Any:
    """A large page is rendered in a thread, so that it blocks nothing and can be interrupted."""
    return await run_interruptibly(work) if len(source) > _WORTH_A_THREAD else work()


WEB_TOOLS = (fetch_url, extract_links)
