"""Each request gets its own response, in order, however the bytes are split."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.raw_http import Connection, connection, post
from tests.serve.sample_server import DOZE, HOST, quick, served
from toolreeve.serve.request_queue import LARGEST, MAX_WAITING

HEAD = b"POST /quick HTTP/1.1\r\nhost: here\r\n"
GARBAGE = b"GARBAGE\r\n\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
UNREADABLE = [
    GARBAGE,
    CHUNKED + b"nothing\r\n",
    CHUNKED.replace(b"/quick", b"/usual") + b"2\r\nokay",
    HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"content-length: 1\r\ncontent-length: 1\r\n\r\nx",
    HEAD + b"content-length: +1\r\n\r\nx",
    HEAD + b"name: a\r\n b\r\ncontent-length: 0\r\n\r\n",
    HEAD + b"name : a\r\ncontent-length: 0\r\n\r\n",
    b"POST /quick HTTP/1.1\nhost: here\ncontent-length: 0\n\n",
    b"POST http:///quick HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n",
    b"CONNECT here:80 HTTP/1.1\r\nhost: here\r\n\r\n",
]
LAST = [
    post([HOST, (b"connection", b"close")], b"last", target=b"/quick"),
    post([HOST], b"last", target=b"/quick", version=b"1.0"),
    post([HOST, (b"connection", b"keep-alive")], b"last", target=b"/quick", version=b"1.0"),
]


def chunked(body: bytes, head: bytes = CHUNKED) -> bytes:
    half = len(body) // 2
    parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
    return head + parts + b"0\r\nname: trailed\r\n\r\n"


def upgrading(body: bytes) -> bytes:
    return HEAD + UPGRADE + b"content-length: %d\r\n\r\n%s" % (len(body), body)


WAYS: Sequence[Callable[[bytes], bytes]] = [
    quick,
    chunked,
    upgrading,
    lambda body: post([HOST], body, target=b"/usual"),
]


@dataclass(frozen=True, slots=True)
class Script:
    """What is said on one connection, and which bodies are to be answered. `ending` ends it, and what follows is in
    vain."""

    requests: Sequence[bytes]
    bodies: Sequence[bytes]
    ending: bytes = b""

    @property
    def said(self) -> bytes:
        return b"".join(self.requests)

    @property
    def said_last(self) -> bytes:
        return self.ending + quick(b"in vain") * 2 if self.ending else b""


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    bodies, requests = [], []
    for number in range(draw(st.integers(1, 12))):
        word, turns = draw(st.sampled_from([b"think", b"leave"])), draw(st.integers(0, 6))
        padding = b"x" * (LARGEST if draw(st.integers(0, 20)) == 0 else 0)
        bodies.append(b"%s %d %s no-%d" % (word, turns, padding, number))
        requests.append(draw(st.sampled_from(WAYS))(bodies[-1]))
    return Script(requests, bodies, draw(st.sampled_from([b"", *UNREADABLE, *LAST])))


class Stage:
    """A server in a loop of its own: Hypothesis calls without one."""

    def __init__(self, portal: BlockingPortal, url: str) -> None:
        self._portal, self._url = portal, url

    def play(self, script: Script, sizes: Sequence[int]) -> list[bytes]:
        """The last word of each answer; of a refusal its status. If the connection is to end, it has ended."""
        return self._portal.call(self._play, script, sizes)

    async def _play(self, script: Script, sizes: Sequence[int]) -> list[bytes]:
        async with connection(self._url) as line, asyncio.TaskGroup() as tasks:
            tasks.create_task(say(line, script, sizes))
            answers = [await line.answer() for _ in range(len(script.bodies) + bool(script.ending))]
            rest = await line.rest() if script.ending else b""
        assert rest == b""
        return [each.body.split()[-1] if each.status == 200 else b"%d" % each.status for each in answers]


async def say(line: Connection, script: Script, sizes: Sequence[int]) -> None:
    """In pieces of these sizes, over and over, so that each is likely to arrive alone. How it ends comes in one piece:
    what arrives after the end would break the connection off."""
    data = script.said
    for size in cycle(max(size, len(data) // 200) for size in sizes):
        await line.send(data[:size])
        data = data[size:]
        await asyncio.sleep(0)
        if not data:
            break
    await line.send(script.said_last)


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with (
        start_blocking_portal(backend_options={"use_uvloop": request.param}) as portal,
        portal.wrap_async_context_manager(served()) as (url, _, _),
    ):
        yield Stage(portal, url)


@settings(max_examples=100)
@given(script=scripts(), sizes=st.lists(st.integers(1, 2000), min_size=1, max_size=8))
def test_every_request_gets_its_own_answer_in_order_however_it_is_cut(
    stage: Stage, script: Script, sizes: list[int]
) -> None:
    last = [] if not script.ending else [b"last"] if script.ending in LAST else [b"400"]

    assert stage.play(script, sizes) == [body.split()[-1] for body in script.bodies] + last


@pytest.mark.parametrize("unreadable", UNREADABLE)
async def test_what_cannot_be_read_is_refused_after_what_came_before_it_was_answered(unreadable: bytes) -> None:
    async with served() as (url, application, _), connection(url) as line:
        await line.send(DOZE + quick(b"second") + unreadable + quick(b"in vain"))
        await application.dozes.wait()
        application.woken.set()
        answers = [await line.answer() for _ in range(3)]
        rest = await line.rest()

    assert [each.body for each in answers[:2]] == [b"quick ? doze", b"quick ? second"]
    assert (answers[2].status, answers[2].headers["connection"], rest) == (400, "close", b"")


async def test_a_body_that_cannot_be_read_gets_no_second_answer() -> None:
    async with served() as (url, _, _), connection(url) as line:
        await line.send(CHUNKED.replace(b"/quick", b"/early"))
        first = await line.answer()
        await line.send(b"nothing\r\n")

        assert (first.body, await line.rest()) == (b"usual early", b"")


async def test_a_body_behind_the_wish_for_another_protocol_is_no_request() -> None:
    inner = quick(b"smuggled")
    head = HEAD + UPGRADE + b"content-length: %d\r\n\r\n" % len(inner)
    async with served() as (url, _, _), connection(url) as line:
        await line.send(head)
        await line.send(inner)
        told = await line.answer()
        await line.send(quick(b"next"))

        assert (told.body, (await line.answer()).body) == (b"quick ? " + inner, b"quick ? next")


async def test_however_many_requests_come_together_all_are_answered() -> None:
    many = 40 * MAX_WAITING
    async with served() as (url, application, _), connection(url) as line:
        await line.send(DOZE + b"".join(quick(b"%d" % number) for number in range(many)))
        await application.dozes.wait()
        application.woken.set()
        answers = [await line.answer() for _ in range(many + 1)]

    assert [each.body.split()[-1] for each in answers[1:]] == [b"%d" % number for number in range(many)]


@pytest.mark.parametrize("behind", [b"", quick(b"next"), GARBAGE], ids=["alone", "before another", "before garbage"])
async def test_a_disconnect_is_noticed_by_the_asgi_application(behind: bytes) -> None:
    async with served() as (url, application, _):
        async with connection(url) as line:
            await line.send(post([HOST], b"linger") + behind)
            await application.dozes.wait()
        await asyncio.wait_for(application.left.wait(), 20)
