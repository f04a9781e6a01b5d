"""Connectors: CPU time of a search beyond its requests, memory of a large mail.

Google is a local server in this process, in both of what is compared.
"""

import asyncio
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

import pytest
from tests.connectors.connected import Connected
from tests.connectors.google_server import CLIENT, Google, google_server, mail, part
from tests.world import World

from bench.measure import Row
from toolreeve import Toolreeve
from toolreeve.core.http import HttpRequest

MAILS = 10
ROUNDS = 30
PROMISED_MS = 5.0
MAIL_MB = 25
PROMISED_SIZES = 3.0


async def connectors() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Path(folder)
        connected = Connected(World(place), patch)
        async with google_server() as google:
            for number in range(MAILS):
                google.mails[f"m{number}"] = mail(f"m{number}", part("text/plain", "hello"), From="a@b.example")
            large = "x" * (MAIL_MB << 20)
            google.mails["large"] = mail("large", part("text/plain", large), From="a@b.example")
            grant = google.grant("gmail.readonly")
            connected.keep(
                {"GOOGLE_CLIENT_ID": CLIENT[0], "GOOGLE_CLIENT_SECRET": CLIENT[1], "GOOGLE_GMAIL_GRANT": grant}
            )
            async with connected.reeve(google.web) as reeve:
                return [await _search(reeve, google), await _large_mail(reeve)]


async def _search(reeve: Toolreeve, google: Google) -> Row:
    plain: list[float] = []
    ours: list[float] = []
    large = google.mails.pop("large")
    for _ in range(ROUNDS + 1):
        seen = len(google.web.received)
        ours.append(await _cpu(lambda: reeve.call("gmail_search", query="x", maxResults=MAILS)))
        requests = [
            HttpRequest(
                method="GET",
                url=f"http://127.0.0.1:{google.web.port}{each.path}",
                headers={"authorization": each.headers["authorization"]},
            )
            for each in google.web.received[seen:]
        ]
        plain.append(await _cpu(lambda: asyncio.gather(*map(reeve.internals.http.send, requests))))  # noqa: B023
    google.mails["large"] = large
    more = (statistics.median(ours[1:]) - statistics.median(plain[1:])) * 1000
    return Row(
        name=f"connectors: CPU of a search of {MAILS} mails beyond its requests",
        value=f"{more:.1f} ms",
        target=f"≤ {PROMISED_MS:g} ms",
        met=more <= PROMISED_MS,
    )


async def _cpu(work: object) -> float:
    began = time.process_time()
    await work()  # type: ignore[operator]
    return time.process_time() - began


async def _large_mail(reeve: Toolreeve) -> Row:
    """Without the server's own copy of the response, in base64, which is in this process too."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    result = await reeve.call("gmail_read", messageId="large")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if not result.success:
        raise RuntimeError(f"the mail was not read: {result.error}")
    sizes = (peak - before) / (MAIL_MB << 20) - 4 / 3
    return Row(
        name=f"connectors: memory of a mail of {MAIL_MB} MB",
        value=f"{sizes:.2f} times its size",
        target=f"≤ {PROMISED_SIZES:g}",
        met=sizes <= PROMISED_SIZES,
    )
