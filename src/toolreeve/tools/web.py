"""What does a web page say, and where does it lead? Pages are read, never run; every answer is untrusted."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.http import HttpReply, HttpRequest
from toolreeve.core.result import Output
from toolreeve.core.threads import run_interruptibly
from toolreeve.core.tool import tool
from toolreeve.core.urls import parse_url
from toolreeve.tools.html import MAX_INPUT, html_to_text, links_of, title_of
from toolreeve.tools.http import LONGEST, TIMEOUT, UNTRUSTED, reaches, readable, takes
from toolreeve.tools.markdown import html_to_markdown

MAX_LINKS = 5000
_WORTH_A_THREAD = 64 * 1024
_RENDERERS = {"text": html_to_text, "markdown": html_to_markdown}


@tool(
    danger=DangerLevel.SAFE,
    category="web",
    effects=reaches,
    timeout=LONGEST + 5,
    inline=True,
    source="toolreeve",
    input_schema=takes(
        ["url"],
        url={"type": "string", "description": "An http:// or https:// URL."},
        timeout=TIMEOUT,
        user_agent={"type": ["string", "null"], "default": None, "description": "The User-Agent to send."},
        format={
            "enum": ["raw", "text", "markdown"],
            "default": "raw",
            "description": "raw: as it came; text or markdown: an HTML page made readable.",
        },
    ),
)
async def fetch_url(
    ctx: Context, url: str, timeout: float | None = None, user_agent: str | None = None, format: str = "raw"
) -> Output:
    """Fetch a web page or file and return its content: as it came, or an HTML page as plain text or Markdown."""
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
        data["title"] = title_of(source)
        if render := _RENDERERS.get(format):
            data["content"] = await _work(source, lambda: render(source, reply.url))
            if len(source) > MAX_INPUT:
                data["next"] = f"fetch_url(url={reply.url!r}, format='raw')"
    return Output(data=data, main=data["content"], truncated="next" in data, labels=UNTRUSTED)


def _link_effects(args: Mapping[str, Any], files: Files) -> Sequence[Effect]:
    return reaches(args, files) if args.get("url") else ()


@tool(
    danger=DangerLevel.SAFE,
    category="web",
    effects=_link_effects,
    timeout=LONGEST + 5,
    inline=True,
    source="toolreeve",
    input_schema=takes(
        [],
        html={"type": ["string", "null"], "default": None, "description": "HTML to look for links in."},
        url={"type": ["string", "null"], "default": None, "description": "Or the page to fetch and look in."},
        base_url={"type": ["string", "null"], "default": None, "description": "What relative links are relative to."},
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
    """List the links of an HTML text or of a page at a URL, made absolute, in their order."""
    if (html is None) == (url is None):
        raise ToolError(ErrorCode.INVALID_PARAMS, "give either /html or /url, not both and not neither")
    base = parse_url(base_url).url if base_url else ""
    source, cut = html or "", False
    if url is not None:
        reply = await _fetch(ctx, url, timeout, None)
        source, _ = readable(reply.body, reply.content_type, cut=reply.truncated)
        base, cut = base or reply.url, reply.truncated
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
    """A large page is read in a thread, so that it holds nobody up and can be ended."""
    return await run_interruptibly(work) if len(source) > _WORTH_A_THREAD else work()


WEB_TOOLS = (fetch_url, extract_links)
