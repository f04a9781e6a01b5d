"""Server of the private socket: answers the hooks of one workspace.

Only processes of our own user are answered. A socket that a dead server left is replaced; one that answers is left to
its server, which decides by the same configuration.
"""

import asyncio
import json
import logging
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from toolreeve.config import Configuration
from toolreeve.hook.events import CLIENTS, HEADLESS, MAX_EVENT, MalformedEvent
from toolreeve.hook.private_socket import LONGEST_PATH, NotPrivate, connect, make_directory, require_own, socket_path
from toolreeve.hook.service import HookRecord, HookService

logger = logging.getLogger(__name__)

READ_TIMEOUT = 5.0
PROBE_TIMEOUT = 1.0
LONGEST_NAME = 64


@asynccontextmanager
async def serve_hooks(configuration: Configuration, record: HookRecord) -> "AsyncIterator[HookServer | None]":
    """Answer hooks while inside; None if another server does, or if hooks must decide for themselves."""
    workspace = configuration.settings.workspace.dir
    path = socket_path(workspace, configuration.known.environ)
    listener = await asyncio.to_thread(_bind, path) if _decides_alike(configuration) else None
    if listener is None:
        yield None
        return
    hooks = HookServer(path, HookService(workspace, record))
    server = await asyncio.start_unix_server(hooks.serve, sock=listener, limit=MAX_EVENT + 1024)
    identity = os.lstat(path).st_ino
    try:
        yield hooks
    finally:
        server.close()
        hooks.close()
        with suppress(OSError):
            if os.lstat(path).st_ino == identity:
                Path(path).unlink()


def _decides_alike(configuration: Configuration) -> bool:
    """Whether a hook of this workspace would load the same configuration: flags are known to this process alone."""
    return not any(
        origin in ("flag", "code") for key, origin in configuration.origins.items() if key != "workspace.dir"
    )


def _bind(path: str) -> socket.socket | None:
    if len(os.fsencode(path)) > LONGEST_PATH:
        return None
    try:
        make_directory(path)
        if _is_served(path):
            return None
        Path(path).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        Path(path).chmod(0o600)  # the directory is ours alone; the umask would be that of all threads
        listener.listen(64)
        return listener
    except OSError as problem:
        logger.warning("hooks will decide for themselves, which takes longer: %s", problem)
        return None


def _is_served(path: str) -> bool:
    try:
        connect(path, PROBE_TIMEOUT).close()
    except NotPrivate:
        raise
    except OSError:
        return False
    return True


class HookServer:
    """`last_used` is when the last event came, by the monotonic clock."""

    def __init__(self, path: str, service: HookService) -> None:
        self.path = path
        self.last_used = time.monotonic()
        self._service = service

    def close(self) -> None:
        self._service.close()

    async def idle(self, seconds: float) -> None:
        """Returns once no event came for so long."""
        while (rest := self.last_used + seconds - time.monotonic()) > 0:  # noqa: ASYNC110 - the clock is awaited
            await asyncio.sleep(rest)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            require_own(writer.get_extra_info("socket"))
            async with asyncio.timeout(READ_TIMEOUT):
                request = await _read(reader)
            self.last_used = time.monotonic()
            writer.write(await self._answer(request))
            await writer.drain()
        except (OSError, TimeoutError) as problem:
            logger.warning("a hook was not answered: %s", problem)
        finally:
            writer.close()

    async def _answer(self, request: bytes) -> bytes:
        name, _, raw = request.partition(b"\n")
        client, _, state = name.decode("ascii", "replace").partition(" ")
        try:
            if client not in CLIENTS:
                raise MalformedEvent("the client is not known")
            decision, reason = await self._service.answer(client, raw, headless=state == HEADLESS)
        except Exception as problem:  # whatever it is, the call is refused
            decision = "deny"
            reason = f"refused: {problem}"
        return json.dumps({"decision": decision, "reason": reason}).encode()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Everything up to the end; of what is too long, enough to tell that it is."""
    request = b""
    while len(request) <= MAX_EVENT + LONGEST_NAME and (more := await reader.read(1024 * 1024)):
        request += more
    return request
