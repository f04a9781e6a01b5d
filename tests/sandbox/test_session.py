"""Slots of a session: locked concurrently, each with every cover and isolated from the others."""

import asyncio
import os
import resource
import select
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.sandbox.test_command import within
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.command import ConfinedCommand
from toolreeve.sandbox.launch import Unavailable
from toolreeve.sandbox.layout import BASE_ENVIRONMENT, Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.session import SandboxSession, SlotHandle, SlotKind
from toolreeve.sandbox.tiers import Strictness


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[SandboxSession]:
    sandbox = Sandbox(Layout(workspace=str(tmp_path), readable=(sys.base_prefix,)), Strictness())
    await sandbox.run(ProcessRequest(argv=("true",), directory=str(tmp_path)))
    (session,) = sandbox._sessions.values()
    yield session
    await sandbox.close()


@pytest.fixture
def nothing() -> Iterator[int]:
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    yield descriptor
    os.close(descriptor)


async def kind_of(session: SandboxSession) -> SlotKind:
    (kind,) = session._idle
    session.drop(await session.take(kind))
    return kind


async def print_file(session: SandboxSession, slot: SlotHandle, path: Path, nothing: int) -> bytes:
    request = ProcessRequest(argv=("cat", str(path)), directory=str(path.parent))
    outcome = await ConfinedCommand(session, slot, None, request.limits).run(request, BASE_ENVIRONMENT, nothing)
    return outcome.stdout


async def test_a_path_covered_while_slots_are_being_locked_is_covered_in_all_of_them(
    session: SandboxSession, tmp_path: Path, nothing: int
) -> None:
    kind = await kind_of(session)
    path = tmp_path / "words.txt"
    path.write_text("not for commands")
    before = [asyncio.ensure_future(session.take(kind)) for _ in range(6)]
    await asyncio.sleep(0)  # they are ordered, and none is there yet

    session.cover([str(path)], [])
    after = [asyncio.ensure_future(session.take(kind)) for _ in range(2)]
    slots = await asyncio.gather(*before, *after)

    assert [await print_file(session, slot, path, nothing) for slot in slots] == [b""] * 8


async def test_a_slot_exits_when_its_socket_closes_however_many_others_there_are(
    session: SandboxSession, nothing: int
) -> None:
    kind = await kind_of(session)
    first, *_ = await asyncio.gather(*(session.take(kind) for _ in range(4)))
    waiting = select.poll()
    waiting.register(first.pidfd, select.POLLIN)

    os.dup2(nothing, first.commands.fileno(), inheritable=False)

    assert within(10, lambda: bool(waiting.poll(0)))


async def test_paths_that_grow_in_a_message_are_covered_all_the_same(session: SandboxSession, tmp_path: Path) -> None:
    longest = f"{tmp_path}/" + "/".join(["\x01" * 200] * 18)

    for start in range(0, 600, 120):  # some 10 MB of JSON, in one go and while earlier ones are pending
        session.cover([f"{longest}/{number}" for number in range(start, start + 120)], [longest] * 120)
    await session.wait_covered()

    assert session.alive


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[SandboxSession]:
    """A session with one slot."""
    layout = Layout(workspace=str(tmp_path), readable=(sys.base_prefix,))
    sandbox = Sandbox(layout, Strictness(concurrency=1))
    await sandbox.run(ProcessRequest(argv=("true",), directory=str(tmp_path)))
    (session,) = sandbox._sessions.values()
    yield session
    await sandbox.close()


async def test_all_that_wait_for_a_slot_learn_that_the_session_ended(narrow: SandboxSession) -> None:
    (kind,) = narrow._idle
    await narrow.take(kind)
    waiting = [asyncio.ensure_future(narrow.take(kind)) for _ in range(5)]
    await asyncio.sleep(0)

    narrow.close()

    outcomes = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 5


async def test_the_turn_of_a_cancelled_command_goes_to_the_next(narrow: SandboxSession) -> None:
    (kind,) = narrow._idle
    slot = await narrow.take(kind)
    first, second = [asyncio.ensure_future(narrow.take(kind)) for _ in range(2)]
    await asyncio.sleep(0)

    narrow.give_back(slot)
    first.cancel()

    assert await asyncio.wait_for(second, 5) is slot
    assert first.cancelled()


async def test_a_slot_that_comes_for_a_cancelled_command_is_not_lost(narrow: SandboxSession) -> None:
    (kind,) = narrow._idle
    narrow.drop(await narrow.take(kind))
    taking = asyncio.ensure_future(narrow.take(kind))
    await asyncio.sleep(0)
    assert narrow._supervisor is not None

    def receive_and_cancel() -> None:
        narrow._receive()
        taking.cancel()

    asyncio.get_running_loop().add_reader(narrow._supervisor.control, receive_and_cancel)
    with pytest.raises(asyncio.CancelledError):
        await taking

    assert await asyncio.wait_for(narrow.take(kind), 5) in narrow._slots


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(1100)]
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
async def test_a_sandbox_is_built_for_a_runtime_with_many_descriptors(tmp_path: Path) -> None:
    sandbox = Sandbox(Layout(workspace=str(tmp_path), readable=(sys.base_prefix,)), Strictness())
    try:
        ended = await sandbox.run(ProcessRequest(argv=("echo", "fine"), directory=str(tmp_path)))
    finally:
        await sandbox.close()

    assert ended.stdout == b"fine\n"
