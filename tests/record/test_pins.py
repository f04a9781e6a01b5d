"""Pins in a real database: first seen is pinned, and only what was shown can be accepted."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.record.backends import store_at
from toolreeve.record.pins import ChangedPin, OfferedDefinition, PinTable, WaitingPin

pytestmark = pytest.mark.usefixtures("database")


def digest(definition: bytes) -> bytes:
    return hashlib.sha256(definition).digest()


def offer(definition: bytes) -> list[OfferedDefinition]:
    return [OfferedDefinition("echo", digest(definition), definition)]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[PinTable]:
    store = store_at(path / "t.db")
    await store.start()
    try:
        yield store.pins
    finally:
        await store.close()


async def test_the_first_definition_is_pinned_and_another_differs(tmp_path: Path) -> None:
    async with opened(tmp_path) as pins:
        assert await pins.compare("s", "here", offer(b"old"), digest) == {}
        assert await pins.compare("s", "here", offer(b"new"), digest) == {"echo": ChangedPin(b"old", is_new=True)}
        assert await pins.compare("s", "here", offer(b"new"), digest) == {"echo": ChangedPin(b"old", is_new=False)}
        assert await pins.compare("s", "elsewhere", offer(b"new"), digest) == {}
        assert await pins.waiting("s") == [WaitingPin("here", "echo", b"old", b"new")]


async def test_a_change_that_is_withdrawn_waits_no_more(tmp_path: Path) -> None:
    async with opened(tmp_path) as pins:
        for definition in (b"old", b"new", b"old"):
            await pins.compare("s", "here", offer(definition), digest)

        assert await pins.waiting("s") == []


async def test_only_the_definition_that_was_shown_is_accepted(tmp_path: Path) -> None:
    async with opened(tmp_path) as pins:
        for definition in (b"old", b"shown", b"changed again"):
            await pins.compare("s", "here", offer(definition), digest)

        assert await pins.accept("s", "here", {"echo": digest(b"shown")}, digest) == []
        assert await pins.pinned_digest("s", "here", "echo") == digest(b"old")
        assert await pins.accept("s", "here", {"echo": digest(b"changed again")}, digest) == ["echo"]
        assert pins.read_pinned_digest("s", "here", "echo") == digest(b"changed again")
        assert await pins.waiting("s") == []


async def test_a_tool_that_was_never_pinned_has_no_digest_and_cannot_be_accepted(tmp_path: Path) -> None:
    async with opened(tmp_path) as pins:
        assert await pins.pinned_digest("s", "here", "echo") is None
        assert await pins.accept("s", "here", {"echo": digest(b"new")}, digest) == []
