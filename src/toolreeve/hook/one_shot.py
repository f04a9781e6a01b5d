"""Decides one event without a server; may start one for later.

Loading the configuration, the policy and the record takes longer than a hook should, so the first hook of a while
starts a process that answers the following ones, and ends when none comes.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolreeve.config import Configuration
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.hook.service import Answer, HookService, load_for_hook
from toolreeve.information_flow.sessions import FlowSessions
from toolreeve.record.journal import Journal
from toolreeve.record.pending import PendingStore
from toolreeve.runtime.store import configured_store

RESIDENT = "resident"
"""The argument of `toolreeve hook` that starts the process."""


def decide_alone(client: str, workspace: str, raw: bytes, *, headless: bool = False) -> Answer:
    configuration = load_for_hook(workspace)
    answer = asyncio.run(_decide(configuration, client, raw, headless=headless))
    if configuration.settings.hooks.resident_minutes:
        _start_resident(workspace)
    return answer


async def _decide(configuration: Configuration, client: str, raw: bytes, *, headless: bool) -> Answer:
    async with _open_record(configuration) as parts:
        service = HookService(configuration.settings.workspace.dir, *parts)
        try:
            return await service.answer(client, raw, headless=headless)
        finally:
            service.close()


@asynccontextmanager
async def _open_record(configuration: Configuration) -> AsyncIterator[tuple[Journal, FlowSessions, PendingStore]]:
    store = configured_store(configuration)
    workspace = os.path.realpath(configuration.settings.workspace.dir)
    redactor = Redactor(configuration.secrets)
    lifetime = configuration.settings.approval.pending_hours * 3600
    journal = Journal(store, redactor, time.time, workspace=workspace)
    flow = FlowSessions(store.flow_facts(time.time), now=time.time, redact=redactor.text)
    await store.start()
    try:
        await journal.start()
        try:
            yield journal, flow, PendingStore(store.pending, time.time, lifetime=lifetime)
        finally:
            await journal.stop()
    finally:
        await store.close()


def _start_resident(workspace: str) -> None:
    """Detached: the client that runs the hook must not wait for it."""
    subprocess.Popen(
        [sys.executable, "-P", "-m", "toolreeve", "hook", RESIDENT, workspace],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def run_resident(workspace: str) -> None:
    asyncio.run(_serve(workspace))


async def _serve(workspace: str) -> None:
    from toolreeve.hook.server import serve_hooks

    configuration = load_for_hook(workspace)
    seconds = configuration.settings.hooks.resident_minutes * 60
    async with _open_record(configuration) as parts, serve_hooks(configuration, *parts) as server:
        if server is not None:
            await server.idle(seconds)
