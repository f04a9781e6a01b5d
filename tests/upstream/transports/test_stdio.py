"""Servers on this machine: whatever they do, the session answers, and nothing of them is left."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from tests.upstream.callers import ScriptedCaller
from toolreeve.core.mcp import Era
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.process import GroupedProcess, Streams, inherited
from toolreeve.upstream.transports.stdio import StdioTransport
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable

HERE = Path(__file__).parent.parent
HOSTILE = (sys.executable, "-S", str(HERE / "servers" / "hostile.py"))
PATIENCE = 20.0


@asynccontextmanager
async def server(*words: str, **options: Any) -> AsyncIterator[UpstreamSession]:
    environment = inherited(os.environ) | options.pop("environment", {})
    transport = StdioTransport([*HOSTILE, *words], environment=environment, directory=options.pop("directory", None))
    session = UpstreamSession(transport, client_info={"name": "test", "version": "0"}, **options)
    await session.open(Era.LEGACY, PATIENCE)
    try:
        yield session
    finally:
        await session.close()


async def call(session: UpstreamSession, params: Any = None, **more: Any) -> dict[str, Any]:
    return await session.request("tools/call", params or {}, **({"timeout": PATIENCE} | more))


def alive(pids: list[int]) -> list[int]:
    """Those that still run; what waits to be collected by somebody else does not."""
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_until_gone(pids: list[int]) -> list[int]:
    """Those that are still there when patience is over."""
    _, left = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=PATIENCE)
    return alive([process.pid for process in left])


async def test_output_that_is_not_json_rpc_is_ignored() -> None:
    async with server("garbage") as session:
        assert await call(session) == {"fine": True}


async def test_output_outside_of_the_protocol_is_kept_for_the_error() -> None:
    transport = StdioTransport(
        ["/bin/sh", "-c", "echo 'usage: server PATH'; echo 'no PATH' >&2; exit 64"], environment={}
    )

    with pytest.raises(ServerUnavailable) as away:
        await UpstreamSession(transport, client_info={}).open(Era.LEGACY, PATIENCE)

    assert "it ended with exit code 64" in str(away.value)
    assert "usage: server PATH" in str(away.value)
    assert "no PATH" in str(away.value)


async def test_a_batch_is_read_as_its_messages() -> None:
    async with server("batch") as session:
        one, two = await asyncio.gather(call(session), call(session))

    assert (one, two) == ({"of": 1}, {"of": 2})


async def test_a_message_without_end_ends_the_session_and_not_our_memory() -> None:
    before = psutil.Process().memory_info().rss

    async with server("giant_line") as session:
        with pytest.raises(ServerUnavailable, match="it sent a message of more than 64 MB"):
            await call(session)
        assert not session.alive

    assert psutil.Process().memory_info().rss - before < 160 << 20


async def test_an_answer_that_breaks_off_is_the_servers_end_and_no_answer() -> None:
    async with server("half_a_line") as session:
        with pytest.raises(ServerUnavailable, match="it ended with exit code 3"):
            await call(session)


async def test_an_answer_just_before_the_end_counts() -> None:
    async with server("answer_and_die") as session:
        assert await call(session) == {"fine": True}


async def test_a_server_that_closes_its_output_is_lost_even_if_it_lives_on() -> None:
    async with server("closed_output") as session:
        with pytest.raises(ServerUnavailable, match="it closed its output"):
            await call(session)


async def test_a_server_that_never_answers_is_given_up() -> None:
    session = UpstreamSession(StdioTransport([*HOSTILE, "silent"], environment=inherited(os.environ)), client_info={})

    with pytest.raises(ServerUnavailable, match=r"did not respond within 0\.3 s"):
        await session.open(Era.LEGACY, 0.3)


async def test_a_second_answer_is_taken_for_nothing_else() -> None:
    async with server("twice") as session:
        assert [await call(session), await call(session)] == [{"answer": "first"}, {"answer": "third"}]


async def test_a_flood_of_notifications_drowns_nobody() -> None:
    caller = ScriptedCaller(log_level="debug")

    async with server("notifications") as session:
        assert await call(session, peer=caller) == {"fine": True}

    assert 0 < len(caller.told) <= 50_000


async def test_a_flood_on_the_error_stream_is_read_and_only_its_end_is_kept() -> None:
    async with server("errors") as session:
        assert await call(session) == {"fine": True}
        with pytest.raises(ServerUnavailable) as away:
            await call(session)

    assert "it ended with exit code 7" in str(away.value)
    assert str(away.value).endswith("the last of it ‹U+202E›")
    assert "\x1b" not in str(away.value)
    assert len(str(away.value)) < 20_000


async def test_a_server_that_does_not_read_does_not_hold_us_up() -> None:
    async with server("deaf") as session:
        for _ in range(3):
            session.notify("notifications/x", {"filling": "x" * (20 << 20)})
        with pytest.raises(ServerUnavailable, match="it does not read its input: 60 MB are queued"):
            session.notify("notifications/x", {"filling": "x" * (20 << 20)})
        with pytest.raises(RemoteError, match="longer than 64 MB"):
            await call(session, {"filling": "x" * (65 << 20)})


async def test_large_messages_cross_whole_in_both_directions() -> None:
    text = "é" * (2 << 20)

    async with server("large") as session:
        results = await asyncio.gather(*(call(session, {"text": text, "number": n}) for n in range(3)))

    assert [result["number"] for result in results] == [0, 1, 2]
    assert all(result["text"] == text for result in results)


def test_all_of_it_works_on_the_faster_loop_too() -> None:
    async def speak() -> None:
        async with server("large") as session:
            results = await asyncio.gather(*(call(session, {"n": n, "text": "x" * 100_000}) for n in range(50)))
            assert [result["n"] for result in results] == list(range(50))

    uvloop.run(speak())


async def test_a_server_finds_nothing_in_its_environment_but_what_was_declared(
    monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
    monkeypatch.setenv("LD_PRELOAD_X", "ours")

    async with server("environment", environment={"TOKEN": "thé irs"}, directory=str(tmp_path)) as session:
        found = await call(session)

    assert found["TOKEN"] == "thé irs"
    assert found["cwd"] == str(tmp_path)
    assert found["PATH"] == os.environ["PATH"]
    assert "AWS_SECRET_ACCESS_KEY" not in found
    assert "LD_PRELOAD_X" not in found


async def test_a_server_inherits_no_descriptor_but_its_three_streams() -> None:
    async with server("descriptors") as session:
        found = await call(session)

    assert sorted(found) == ["0", "1", "2"]
    assert all(place.startswith("pipe:") for place in found.values())


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["no-such-program-anywhere"], "No such file or directory"),
        (["/etc/passwd"], "Permission denied"),
        (["/"], "Permission denied"),
        ([""], "No such file or directory"),
        (["true", "a\0b"], "Invalid argument"),
    ],
)
async def test_what_cannot_be_started_says_why(argv: list[str], problem: str) -> None:
    with pytest.raises(ServerUnavailable) as away:
        await UpstreamSession(StdioTransport(argv, environment=inherited(os.environ)), client_info={}).open(
            Era.LEGACY, PATIENCE
        )

    assert str(away.value) == f"{argv[0]!r}: it cannot be started: {problem}"


async def test_without_a_reaper_the_group_is_ended_with_the_server() -> None:
    streams = Streams()
    script = "trap '' TERM; sleep 61 & echo $! $$; wait"
    server = GroupedProcess(["sh", "-c", script], inherited(os.environ), None, streams)
    os.set_blocking(streams.stdout, True)
    pids = [int(word) for word in (await asyncio.to_thread(os.read, streams.stdout, 100)).split()]
    assert alive(pids) == pids

    server.end()

    assert await asyncio.wait_for(server.ended, PATIENCE) == "it was ended by signal 9 (Killed)"
    assert await asyncio.to_thread(wait_until_gone, pids) == []
    streams.close()


async def test_a_folder_that_is_not_there_is_named_as_the_problem(tmp_path: Path) -> None:
    transport = StdioTransport(["true"], environment=inherited(os.environ), directory=str(tmp_path / "gone"))

    with pytest.raises(ServerUnavailable, match="No such file or directory"):
        await UpstreamSession(transport, client_info={}).open(Era.LEGACY, PATIENCE)


async def test_a_server_that_refuses_to_end_is_ended() -> None:
    async with server("stubborn") as session:
        pids = (await call(session))["pids"]

    assert alive(pids) == []


async def test_all_that_a_server_started_is_gone_when_the_transport_is_closed() -> None:
    async with server("family") as session:
        pids = (await call(session))["pids"]
        assert alive(pids) == pids

    assert alive(pids) == []


async def test_all_that_a_server_started_is_gone_when_it_crashes() -> None:
    async with server("family", "crash") as session:
        pids = (await call(session))["pids"]
        with pytest.raises(ServerUnavailable, match="it was ended by signal 11"):
            await call(session)
        assert alive(pids) == []


def test_all_that_a_server_started_is_gone_when_we_are_killed() -> None:
    holder = subprocess.Popen(
        [sys.executable, "-m", "tests.upstream.session_holder", *HOSTILE, "family"],
        cwd=HERE.parent.parent,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(HERE.parent.parent / "src")},
    )
    assert holder.stdout is not None
    pids = json.loads(holder.stdout.readline())["pids"]
    reapers = [child.pid for child in psutil.Process(holder.pid).children()]
    assert alive([*pids, *reapers]) == [*pids, *reapers]

    holder.kill()
    holder.communicate()

    assert wait_until_gone([*pids, *reapers]) == []


async def test_a_server_that_kills_its_reaper_is_killed() -> None:
    async with server("parricide") as session:
        pids = (await call(session))["pids"]
        with pytest.raises(ServerUnavailable, match="its reaper was killed"):
            await call(session)

    assert await asyncio.to_thread(wait_until_gone, pids) == []


async def test_closing_goes_on_though_its_caller_is_cancelled() -> None:
    transport = StdioTransport([*HOSTILE, "stubborn"], environment=inherited(os.environ))
    session = UpstreamSession(transport, client_info={})
    await session.open(Era.LEGACY, PATIENCE)
    pids = (await call(session))["pids"]

    closing = asyncio.ensure_future(session.close())
    await asyncio.sleep(0)
    closing.cancel()
    await session.close()

    assert closing.cancelled()
    assert alive(pids) == []


async def test_opening_that_is_cancelled_leaves_nothing() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    session = UpstreamSession(StdioTransport([*HOSTILE, "silent"], environment=inherited(os.environ)), client_info={})

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.open(Era.LEGACY, PATIENCE), 0.2)

    left = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert await asyncio.to_thread(wait_until_gone, list(left)) == []


Way = Callable[[], Awaitable[None]]


async def _open_and_close() -> None:
    async with server("large") as session:
        await call(session, {"x": 1})


async def _fail_to_start() -> None:
    with pytest.raises(ServerUnavailable):
        await UpstreamSession(StdioTransport(["no-such-program"], environment={}), client_info={}).open(
            Era.LEGACY, PATIENCE
        )


async def _die() -> None:
    async with server("half_a_line") as session:
        with pytest.raises(ServerUnavailable):
            await call(session)


@pytest.mark.parametrize("way", [_open_and_close, _fail_to_start, _die])
async def test_fifty_transports_leave_no_process_and_no_descriptor(way: Way) -> None:
    await way()
    us = psutil.Process()
    descriptors, children = us.num_fds(), len(us.children())

    for _ in range(10):
        await asyncio.gather(*(way() for _ in range(5)))

    assert (us.num_fds(), len(us.children())) == (descriptors, children)


async def test_a_server_killed_from_outside_is_lost_at_once_and_by_name() -> None:
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async with server("stubborn", on_lost=lost.set_result) as session:
        (pid,) = (await call(session))["pids"]
        os.kill(pid, signal.SIGKILL)

        assert await asyncio.wait_for(lost, PATIENCE) == "it was ended by signal 9 (Killed)"
        assert not session.alive
