"""Approval channel that notifies people elsewhere, with a signed link.

It gives no answer of its own: the question is answered where the link leads, or on any other channel.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from toolreeve.approval.request import Answer, Request
from toolreeve.approval.sentence import plain, sentence
from toolreeve.core.errors import ToolreeveError

logger = logging.getLogger(__name__)

TITLE = "Approval needed"
MISSING = "approval.notify needs the extra 'notify': pip install 'toolreeve[notify]'"
SECONDS = 10.0
Send = Callable[[str, str], bool]
"""Sends a title and a text; False if no service took it."""
MakeLink = Callable[[Request], str]


class NotificationChannel:
    """`send` blocks and runs in a thread; `link` makes the address at which the question can be answered. A question
    that no call waits for is announced as well."""

    name = "notification"
    announces = True

    def __init__(self, send: Send, link: MakeLink, *, redact: Callable[[str], str] = str) -> None:
        self._send = send
        self._link = link
        self._redact = redact

    def available(self) -> bool:
        return True

    async def ask(self, request: Request) -> Answer:
        await self.announce(request)
        await asyncio.Event().wait()
        raise AssertionError  # never set

    async def announce(self, request: Request) -> None:
        """A notification that cannot be sent is logged: the question stays on the other channels."""
        lines = [plain(sentence(request)), f"Danger: {request.danger.value}", self._redact(request.verdict.reason)]
        text = "\n".join([*map(self._redact, lines[:2]), lines[2], self._link(request)])
        try:
            async with asyncio.timeout(SECONDS):
                sent = await asyncio.to_thread(self._send, TITLE, text)
        except TimeoutError:
            sent = False
        except Exception as problem:  # whatever a service's library raises
            logger.warning("a notification about the approval %s could not be sent: %s", request.id, problem)
            return
        if not sent:
            logger.warning("no service took the notification about the approval %s (approval.notify)", request.id)


def new_sender(urls: Sequence[str]) -> Send:
    """Sends through Apprise. Raises ToolreeveError without the extra, or for an address that it does not know."""
    try:
        import apprise
    except ImportError:
        raise ToolreeveError(MISSING) from None
    services = apprise.Apprise()
    for number, url in enumerate(urls, 1):
        if not services.add(url):
            raise ToolreeveError(
                f"approval.notify: address {number} is not one that Apprise knows; it begins {url.partition(':')[0]!r}"
            )

    def send(title: str, text: str) -> bool:
        return bool(services.notify(body=text, title=title))

    return send
