"""A mail to send: recipients, the message, and its preview.

Recipients are plain addresses, so that no display name can pretend to be another one. No header can hold a line break.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from toolreeve.connectors.api import invalid_parameter
from toolreeve.core.errors import ToolError

MAX_RECIPIENTS = 100
RECIPIENT_FIELDS = ("to", "cc", "bcc")
_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64})*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{2,63}"
)
_NAMED = re.compile(r"[^<>@]*<([^<>]*)>")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")


def read_addresses(text: str, parameter: str) -> tuple[str, ...]:
    """The plain addresses of "a@x.org, Ann <b@y.org>". Raises ToolError(INVALID_PARAMS)."""
    if _CONTROL.search(text):
        raise invalid_parameter(parameter, "holds a line break or control character")
    found = [_read_address(each.strip(), parameter) for each in text.split(",")] if text.strip() else []
    if len(found) > MAX_RECIPIENTS:
        raise invalid_parameter(parameter, f"names {len(found)} recipients; at most {MAX_RECIPIENTS} are allowed")
    return tuple(dict.fromkeys(found))


def _read_address(text: str, parameter: str) -> str:
    named = _NAMED.fullmatch(text)
    address = named[1] if named else text
    if not _ADDRESS.fullmatch(address):
        problem = f"{text[:100]!r} is not a mail address; write name@example.org, several with commas"
        raise invalid_parameter(parameter, problem)
    return address


def all_recipients(args: Mapping[str, Any], fields: tuple[str, ...] = RECIPIENT_FIELDS) -> tuple[str, ...]:
    """Every recipient, for the effects of a call; a field that cannot be read counts as it stands."""
    found: list[str] = []
    for name in fields:
        text = args.get(name)
        if not text:
            continue
        try:
            found += read_addresses(str(text), name)
        except ToolError:
            found.append(str(text)[:200])
    return tuple(dict.fromkeys(found))


def compose(args: Mapping[str, Any]) -> EmailMessage:
    """Raises ToolError(INVALID_PARAMS)."""
    message = EmailMessage(policy=SMTP)
    for name in RECIPIENT_FIELDS:
        if addresses := read_addresses(str(args.get(name) or ""), name):
            message[name.capitalize()] = ", ".join(addresses)
    if "To" not in message:
        raise invalid_parameter("to", "names no recipient")
    subject = str(args["subject"])
    if _CONTROL.search(subject):
        raise invalid_parameter("subject", "holds a line break or control character")
    message["Subject"] = subject
    try:
        message.set_content(str(args["body"]), subtype="plain", charset="utf-8")
    except UnicodeEncodeError:
        raise invalid_parameter("body", "is not valid text") from None
    return message


def encode_raw(message: EmailMessage) -> str:
    return urlsafe_b64encode(message.as_bytes()).decode()


def preview_mail(args: Mapping[str, Any]) -> str:
    """The message as it will arrive. Raises ToolError(INVALID_PARAMS)."""
    message = compose(args)
    headers = [f"{name}: {message[name]}" for name in ("To", "Cc", "Bcc", "Subject") if name in message]
    return "\n".join((*headers, "", str(message.get_content()).rstrip("\n")))
