"""Each request on a connection is checked as if it came alone."""

import json
from collections.abc import Iterator, Mapping, Sequence

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.mcp.http_server import HEADERS, HttpTestServer, request, serving
from tests.serve.raw_http import Header, connection, post
from tests.world import World
from toolreeve import DangerLevel, tool

ADA: Mapping[str, object] = {"token": "ada-comes-in-with-this", "user": "ada", "role": "operator", "tools": ["echo"]}
BOB: Mapping[str, object] = {"token": "bob-comes-in-with-this", "user": "bob", "role": "operator", "tools": ["other"]}
CAL: Mapping[str, object] = {"token": "cal-comes-in-with-this", "user": "cal", "role": "viewer"}
USUAL = [*((name.encode(), value.encode()) for name, value in HEADERS.items()), (b"mcp-method", b"tools/call")]
NAMED = (b"mcp-name", b"echo")
HOST = (b"host", b"127.0.0.1")
BODY = json.dumps(request("tools/call", {"name": "echo", "arguments": {"text": "x"}})).encode()
OTHER = json.dumps(request("tools/call", {"name": "other", "arguments": {"text": "longer"}})).encode()

Outcome = tuple[int, bool]
"""The status, and whether the tool ran."""


@tool(danger=DangerLevel.SAFE, inline=True)
def echo(text: str) -> str:
    """Say it again."""
    return f"ran {text}"


@tool(danger=DangerLevel.LOW, inline=True)
def other(text: str) -> str:
    """Say something else."""
    return f"ran {text}"


def bearer(who: Mapping[str, object], scheme: str = "Bearer") -> Header:
    return b"authorization", f"{scheme} {who['token']}".encode()


RUNS: Outcome = (200, True)
UNKNOWN: Outcome = (401, False)
UNSEEN: Outcome = (400, False)
SHOWN: Sequence[tuple[list[Header], Outcome]] = [
    ([bearer(ADA)], RUNS),
    ([bearer(ADA, "bEARER")], RUNS),
    ([(b"Authorization", bearer(ADA)[1])], RUNS),
    ([(b"authorization", bearer(ADA)[1] + b" ")], RUNS),
    ([bearer(CAL)], RUNS),
    ([bearer(BOB)], UNSEEN),
    ([], UNKNOWN),
    ([bearer(ADA, "Basic")], UNKNOWN),
    ([(b"authorization", b"Bearer ada-comes-in-with-thi")], UNKNOWN),
    ([(b"authorization", b"")], UNKNOWN),
    ([(b"x-authorization", bearer(ADA)[1])], UNKNOWN),
    ([bearer(ADA), bearer(ADA)], (400, False)),
    ([bearer(ADA), bearer(BOB)], (400, False)),
]
HOSTS: Sequence[list[Header]] = [
    [],
    [HOST],
    [(b"HOST", HOST[1])],
    [(b"host", b"localhost:1")],
    [(b"host", b"evil.example")],
    [HOST, HOST],
    [HOST, (b"Host", b"evil.example")],
    [HOST, (b"origin", b"http://127.0.0.1")],
    [HOST, (b"origin", b"http://evil.example")],
]
TARGETS = [b"/mcp", b"/mcp/", b"//mcp", b"/%6dcp", b"/mcp?a", b"http://evil.example/mcp", b"/mcp/../mcp"]


def mostly(usual: list[Header], others: Sequence[list[Header]]) -> st.SearchStrategy[list[Header]]:
    return st.just(usual) | st.sampled_from(others)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    headers = [*draw(mostly([HOST], HOSTS)), *USUAL, *draw(mostly([bearer(ADA)], [shown for shown, _ in SHOWN]))]
    named = draw(st.sampled_from([NAMED, NAMED, (b"mcp-name", b"other")]))
    target = draw(st.just(TARGETS[0]) | st.sampled_from(TARGETS))
    return post([*headers, named], draw(st.sampled_from([BODY, BODY, OTHER])), target=target)


class Stage:
    def __init__(self, portal: BlockingPortal, server: HttpTestServer) -> None:
        self._portal, self._server = portal, server
        self._alone: dict[bytes, Outcome] = {}

    def alone(self, said: bytes) -> Outcome:
        if said not in self._alone:
            self._alone[said] = self.together([said])[0]
        return self._alone[said]

    def together(self, said: Sequence[bytes]) -> list[Outcome]:
        return self._portal.call(self._together, said)

    async def _together(self, said: Sequence[bytes]) -> list[Outcome]:
        """Up to the response that ends the connection."""
        told = []
        async with connection(self._server.url) as line:
            for each in said:
                await line.send(each)
                answer = await line.answer()
                told.append((answer.status, b"ran " in answer.body))
                if answer.headers.get("connection") == "close":
                    break
        return told


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    reeve = World(tmp_path_factory.mktemp("line")).reeve(tools=[echo, other])
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(reeve, tokens=[ADA, BOB, CAL])) as server,
    ):
        yield Stage(portal, server)


@settings(max_examples=150)
@given(said=st.lists(requests(), min_size=2, max_size=8))
def test_each_request_fares_as_it_would_alone(stage: Stage, said: list[bytes]) -> None:
    told = stage.together(said)

    assert told == [stage.alone(each) for each in said[: len(told)]]
    assert len(told) == len(said) or said[len(told) - 1].startswith(b"POST http://evil.example/")


@pytest.mark.parametrize(("shown", "outcome"), SHOWN)
def test_who_comes_right_behind_somebody_else_fares_no_better(
    stage: Stage, shown: list[Header], outcome: Outcome
) -> None:
    first, then = (post([HOST, *USUAL, *each, NAMED], BODY) for each in ([bearer(ADA)], shown))

    assert stage.together([first, then]) == [RUNS, outcome]
