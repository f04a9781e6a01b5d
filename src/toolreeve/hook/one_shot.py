"""Decides one event without a server; may start one for later.

Loading the configuration, the policy and the record takes longer than a hook should, so the first hook of a while
starts a process that answers the following ones, and ends when none comes.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.config import Configuration
from toolreeve.config.xdg import DATABASE
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.hook.service import Answer, HookRecord, HookService, load_for_hook
from toolreeve.record.journal import Journal

if TYPE_CHECKING:
    from toolreeve.information_flow.sessions import FlowSessions
    from toolreeve.record.pending import PendingStore
    from toolreeve.record.store import RecordStore

RESIDENT = "resident"
"""The argument of `toolreeve hook` that starts the process."""


def decide_alone(client: str, workspace: str, raw: bytes, *, headless: bool = False) -> Answer:
    configuration = load_for_hook(workspace)
    deciding = _decide(configuration, client, raw, headless=headless)
    if configuration.settings.state.url:
        answer = asyncio.run(deciding)
    else:
        from toolreeve.record.sqlite.blocking_store import run_now

        answer = run_now(deciding)
    if configuration.settings.hooks.resident_minutes:
        _start_resident(workspace)
    return answer


async def _decide(configuration: Configuration, client: str, raw: bytes, *, headless: bool) -> Answer:
    async with _open_record(configuration, _new_store(configuration)) as record:
        service = HookService(configuration.settings.workspace.dir, record, configuration)
        try:
            return await service.answer(client, raw, headless=headless)
        finally:
            service.close()


def _new_store(configuration: Configuration) -> "RecordStore":
    """One that needs no event loop, where the database has one."""
    if configuration.settings.state.url:
        from toolreeve.runtime.store import configured_store

        return configured_store(configuration)
    from toolreeve.record.sqlite.blocking_store import BlockingStore

    return BlockingStore(Path(configuration.settings.state.dir) / DATABASE)


@asynccontextmanager
async def _open_record(configuration: Configuration, store: "RecordStore") -> AsyncIterator[HookRecord]:
    redactor = Redactor(configuration.secrets)
    workspace = os.path.realpath(configuration.settings.workspace.dir)
    journal = Journal(store, redactor, time.time, workspace=workspace)
    await store.start()
    try:
        await journal.start()
        try:
            flow = cache(partial(_new_flow, store, redactor))
            yield HookRecord(journal, flow, cache(partial(_new_questions, store, configuration)))
        finally:
            await journal.stop()
    finally:
        await store.close()


def _new_flow(store: "RecordStore", redactor: Redactor) -> "FlowSessions":
    from toolreeve.information_flow.sessions import FlowSessions

    return FlowSessions(store.flow_facts(time.time), now=time.time, redact=redactor.text)


def _new_questions(store: "RecordStore", configuration: Configuration) -> "PendingStore":
    from toolreeve.record.pending import PendingStore

    lifetime = configuration.settings.approval.pending_hours * 3600
    return PendingStore(store.pending, time.time, lifetime=lifetime)


def _start_resident(workspace: str) -> None:
    """Detached: the client that runs the hook must not wait for it."""
    command = [sys.executable, "-P", "-m", "toolreeve", "hook", RESIDENT, workspace]
    silence = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=silence, setsid=True)


def run_resident(workspace: str) -> None:
    os.chdir("/")
    asyncio.run(_serve(workspace))


async def _serve(workspace: str) -> None:
    from toolreeve.hook.server import serve_hooks
    from toolreeve.runtime.store import configured_store

    configuration = load_for_hook(workspace)
    seconds = configuration.settings.hooks.resident_minutes * 60
    store = configured_store(configuration)
    async with _open_record(configuration, store) as record, serve_hooks(configuration, record) as server:
        if server is not None:
            await server.idle(seconds)
