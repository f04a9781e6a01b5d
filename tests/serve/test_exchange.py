"""Fast-path and ASGI responses, interleaved on one connection."""

import asyncio

import pytest

from tests.serve.raw_http import connection, post
from tests.serve.sample_server import DOZE, HOST, MUCH, quick, served
from toolreeve.serve.request_queue import LARGEST

BEGUN = quick(b"next")[:-2]


async def answers(*requests: bytes, pieces: int | None = None) -> list[bytes]:
    """What one connection hears when it says all this at once, or so many bytes at a time."""
    said = b"".join(requests)
    async with served() as (url, _, _), connection(url) as line:
        for start in range(0, len(said), pieces or len(said)):
            await line.send(said[start : start + (pieces or len(said))])
        return [(await line.answer()).body for _ in requests]


async def test_what_is_recognised_is_answered_the_short_way_and_dated_like_any_answer() -> None:
    async with served() as (url, _, _), connection(url) as line:
        await line.send(quick(b"hello"))
        short = await line.answer()
        await line.send(post([HOST], b"hello", target=b"/other"))
        usual = await line.answer()

    assert (short.body, usual.body) == (b"quick ? hello", b"usual hello")
    assert "date" in short.headers
    assert "date" in usual.headers


@pytest.mark.parametrize("pieces", [None, 1, 7])
async def test_requests_that_come_together_are_answered_in_their_order(pieces: int | None) -> None:
    told = await answers(
        quick(b"one"), quick(b"leave"), post([HOST], b"three"), quick(b"four"), quick(b"five"), pieces=pieces
    )

    assert [each.split()[-1] for each in told] == [b"one", b"leave", b"three", b"four", b"five"]


async def test_a_request_behind_one_that_takes_long_waits_its_turn() -> None:
    async with served() as (url, application, _), connection(url) as line:
        await line.send(DOZE)
        await application.dozes.wait()
        await line.send(quick(b"second") + quick(b"third"))
        application.woken.set()
        told = [(await line.answer()).body.split()[-1] for _ in range(3)]

    assert told == [b"doze", b"second", b"third"]


async def test_a_client_that_does_not_read_gets_no_further_responses_until_it_does() -> None:
    async with served() as (url, application, _), connection(url) as line:
        await line.send(quick(b"much"))
        await application.answered.wait()
        await line.send(quick(b"more"))
        first, second = await line.answer(), await line.answer()

    assert len(first.body) > MUCH
    assert second.body == b"quick ? more"


@pytest.mark.parametrize("pieces", [None, 4096])
async def test_a_body_that_the_door_leaves_alone_arrives_whole(pieces: int | None) -> None:
    large = b"x" * (LARGEST + 1)

    assert await answers(quick(large), quick(b"leave"), pieces=pieces) == [b"usual " + large, b"usual leave"]


@pytest.mark.parametrize(
    "said",
    [
        b"GET /quick HTTP/1.1\r\nhost: here\r\n\r\n",
        b"POST /quick HTTP/1.0\r\nhost: here\r\ncontent-length: 0\r\n\r\n",
        b"POST /quick?more HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n",
        b"POST /quick HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    ],
)
async def test_what_is_unusual_goes_the_usual_way(said: bytes) -> None:
    assert await answers(said) == [b"usual "]


async def test_a_body_without_a_length_and_one_that_waits_to_be_wanted_arrive() -> None:
    chunked = (
        b"POST /quick HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
    )
    async with served() as (url, _, _), connection(url) as line:
        await line.send(chunked)
        first = await line.answer()
        await line.send(b"POST /quick HTTP/1.1\r\nhost: here\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        wanted = await line.answer()
        await line.send(b"hi")
        second = await line.answer()

    assert (first.body, wanted.status, second.body) == (b"quick ? hello", 100, b"usual hi")


async def test_a_head_that_says_the_same_is_read_once_and_one_that_differs_again() -> None:
    async with served() as (url, application, _), connection(url) as line:
        told = []
        for body, name in ((b"a", b"ada"), (b"longer", b"ada"), (b"b", b"bob"), (b"c", b"ada")):
            await line.send(quick(body, (b"name", name)))
            told.append((await line.answer()).body)

    assert told == [b"quick ada a", b"quick ada longer", b"quick bob b", b"quick ada c"]
    assert application.asked == 3


async def test_what_one_connection_said_counts_for_no_other() -> None:
    async with served() as (url, application, _):
        for _ in range(2):
            async with connection(url) as line:
                await line.send(quick(b"a", (b"name", b"ada")))
                await line.answer()

    assert application.asked == 2


@pytest.mark.parametrize("behind", [b"", quick(b"next"), BEGUN], ids=["alone", "before another", "before half of one"])
async def test_a_client_that_goes_away_is_noticed_while_it_is_being_answered(behind: bytes) -> None:
    async with served() as (url, application, _):
        async with connection(url) as line:
            await line.send(DOZE + behind)
            await application.dozes.wait()
        await asyncio.wait_for(application.left.wait(), 20)
        application.woken.set()
        async with connection(url) as line:
            await line.send(quick(b"still here"))
            assert (await line.answer()).body == b"quick ? still here"


async def test_an_answer_that_fails_ends_its_connection_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as (url, _, _), connection(url) as line, connection(url) as other:
        await line.send(quick(b"crash"))
        assert (await line.answer()).status == 500
        assert await line.rest() == b""
        await other.send(quick(b"hello"))
        assert (await other.answer()).body == b"quick ? hello"

    assert "request failed" in caplog.text


async def test_a_server_that_stops_lets_an_answer_end_and_closes_behind_it() -> None:
    async with served() as (url, application, server), connection(url) as line:
        await line.send(DOZE)
        await application.dozes.wait()
        server.should_exit = True
        while server.servers and server.servers[0].is_serving():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        application.woken.set()
        answer = await line.answer()
        assert (answer.body, answer.headers["connection"]) == (b"quick ? doze", "close")
        assert await line.rest() == b""
