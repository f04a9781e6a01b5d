"""Gmail: search, read and send mail.

What a mail says is untrusted and private. Sending names every recipient as an effect of its own.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from toolreeve.connectors.api import PRIVATE, ApiClient, gather, objects
from toolreeve.connectors.catalogue import ServiceUrls
from toolreeve.connectors.google_account import GMAIL, GoogleAccount, google_client
from toolreeve.connectors.mime import LiftedBody, get_header, lift_bodies, parse_mail
from toolreeve.connectors.outgoing_mail import RECIPIENT_FIELDS, all_recipients, compose, encode_raw, preview_mail
from toolreeve.connectors.service_tools import ServiceTools
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.core.threads import run_interruptibly
from toolreeve.core.tool import AnyFunctionTool, Arguments
from toolreeve.core.urls import encode_segment
from toolreeve.tools.http import object_schema

MAX_MAIL = 48 * 1024 * 1024
"""A mail has up to 25 MB, a third more in base64."""
MAX_RESULTS = 100
_MESSAGES = "/gmail/v1/users/me/messages"
_SHOWN = ("From", "To", "Subject", "Date")
_ADDRESSES = {"type": "string", "x-authority": "destination"}


def new_tools(urls: ServiceUrls) -> Sequence[AnyFunctionTool]:
    account = GoogleAccount(GMAIL, urls)
    reading = google_client("Gmail", urls.gmail, account, "gmail.readonly")
    sending = google_client("Gmail", urls.gmail, account, "gmail.send")
    service = ServiceTools("gmail", "mail", urls.gmail)

    @service.tool(
        input_schema=object_schema(
            ["query"],
            query={"type": "string", "description": "As in Gmail's search box: `from:ann is:unread newer_than:7d`."},
            maxResults={"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": 10},
        ),
    )
    async def gmail_search(ctx: Context, query: str, maxResults: int = 10) -> Output:
        """Search the user's mail: id, date, sender, subject and a snippet of each message, newest first."""
        return await _search(reading, ctx, query, maxResults)

    @service.tool(
        input_schema=object_schema(
            ["messageId"],
            messageId={"type": "string", "minLength": 1, "maxLength": 100, "description": "The id from gmail_search."},
            format={
                "enum": ["text", "raw"],
                "default": "text",
                "description": "text: the readable body, hidden text left out; raw: the HTML or text unchanged.",
            },
        ),
    )
    async def gmail_read(ctx: Context, messageId: str, format: str = "text") -> Output:
        """Read a mail: sender, recipients, date, subject, body, and a list of its attachments."""
        path = f"{_MESSAGES}/{encode_segment(messageId)}"
        reply = reading.check_whole(await reading.fetch(ctx, path, {"format": "full"}, max_body=MAX_MAIL))

        def read() -> dict[str, Any]:
            text, lifted = lift_bodies(bytearray(reply.body) if isinstance(reply.body, bytes) else reply.body)
            return _mail(reading.parse_text(text), lifted, raw=format == "raw")

        return Output(data=await run_interruptibly(read), labels=PRIVATE)

    @service.tool(
        danger=DangerLevel.HIGH,
        sends=partial(all_recipients, fields=RECIPIENT_FIELDS),
        preview=preview_mail,
        screen=lambda args, _: _check(args),
        input_schema=object_schema(
            ["to", "subject", "body"],
            to={**_ADDRESSES, "description": "The recipients, separated by commas."},
            subject={"type": "string", "maxLength": 900},
            body={"type": "string", "description": "Plain text."},
            cc={**_ADDRESSES, "default": ""},
            bcc={**_ADDRESSES, "default": ""},
        ),
    )
    async def gmail_send(ctx: Context, to: str, subject: str, body: str, cc: str = "", bcc: str = "") -> Output:
        """Send a plain-text mail from the user's account."""
        args = {"to": to, "cc": cc, "bcc": bcc, "subject": subject, "body": body}
        sent = await sending.post(ctx, f"{_MESSAGES}/send", {"raw": encode_raw(compose(args))})
        data = {"id": _text(sent, "id"), "threadId": _text(sent, "threadId"), "recipients": list(all_recipients(args))}
        return Output(data=data, labels=PRIVATE)

    return gmail_search, gmail_read, gmail_send


def _check(args: Arguments) -> None:
    compose(args)


async def _search(client: ApiClient, ctx: Context, query: str, limit: int) -> Output:
    listed = await client.get_object(ctx, _MESSAGES, {"q": query, "maxResults": limit})
    ids = [_text(each, "id") for each in objects(listed, "messages")[:limit]]
    params = {"format": "metadata", "metadataHeaders": ["From", "Subject", "Date"]}

    async def look_up(message: str) -> dict[str, str]:
        return _summary(await client.get(ctx, f"{_MESSAGES}/{encode_segment(message)}", params))

    messages = await gather(partial(look_up, each) for each in ids if each)
    data: dict[str, Any] = {"messages": messages, "count": len(messages), "query": query}
    if listed.get("nextPageToken"):
        data["more"] = True
    return Output(data=data, labels=PRIVATE)


def _summary(message: Any) -> dict[str, str]:
    payload = _payload(message)
    return {
        "id": _text(message, "id"),
        "date": get_header(payload, "date"),
        "from": get_header(payload, "from"),
        "subject": get_header(payload, "subject"),
        "snippet": _unescape(_text(message, "snippet")),
    }


def _mail(message: Any, lifted: list[LiftedBody], *, raw: bool) -> dict[str, Any]:
    payload = _payload(message)
    parsed = parse_mail(payload, lifted, raw=raw)
    headers = {name.lower(): get_header(payload, name) for name in (*_SHOWN, "Cc", "Reply-To")}
    data: dict[str, Any] = {
        "id": _text(message, "id"),
        "threadId": _text(message, "threadId"),
        "from": headers["from"],
        "to": headers["to"],
        "cc": headers["cc"],
        "replyTo": headers["reply-to"],
        "date": headers["date"],
        "subject": headers["subject"],
        "body": parsed.body,
        "html": parsed.html,
        "attachments": parsed.attachments,
    }
    if parsed.problems:
        data["problems"] = parsed.problems
    return data


def _payload(message: Any) -> Mapping[str, Any]:
    payload = message.get("payload") if isinstance(message, Mapping) else None
    if not isinstance(payload, Mapping):
        raise ToolError(ErrorCode.UPSTREAM, "Gmail returned no message")
    return payload


def _text(message: Any, key: str) -> str:
    found = message.get(key) if isinstance(message, Mapping) else None
    return found if isinstance(found, str) else ""


def _unescape(snippet: str) -> str:
    from toolreeve.tools.markup import unescape

    return " ".join(unescape(snippet).split())
