"""Roots of a stdio client: they narrow the workspace before start-up.

A client can only narrow: a root outside the workspace is ignored, and so is one in a hidden directory, because
`hooks/x` below `.git` would no longer be seen as a file that git obeys. Settings and rules stay those of the
workspace that was configured, so that a narrower one does not lose what its project forbids.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from toolreeve.config import Configuration
from toolreeve.core.mcp import PeerError
from toolreeve.serve.mcp.request_context import ClientInfo, Outbound

ANSWER_TIMEOUT = 5.0
"""Seconds that a client gets to name its roots; without an answer the workspace stays as configured."""
MOST_ROOTS = 100


async def find_roots(
    initialized: "asyncio.Future[ClientInfo | None]", outbound: Outbound, finished: asyncio.Event
) -> Sequence[str]:
    """The URIs that the client names as its roots; none if it is gone, declares none or does not answer in time."""
    end = asyncio.create_task(finished.wait())
    waited: set[asyncio.Future[Any]] = {initialized, end}
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        end.cancel()
    client = initialized.result() if initialized.done() else None
    if client is None or client.capabilities.get("roots") is None:
        return ()
    with suppress(PeerError, TimeoutError):
        async with asyncio.timeout(ANSWER_TIMEOUT):
            return _uris(await outbound.request("roots/list", {}))
    return ()


def _uris(result: Mapping[str, Any]) -> Sequence[str]:
    roots = result.get("roots")
    found = [root.get("uri") for root in roots if isinstance(root, Mapping)] if isinstance(roots, list) else []
    return [uri for uri in found if isinstance(uri, str)][:MOST_ROOTS]


def narrow_workspace(configuration: Configuration, roots: Sequence[str], note: Callable[[str], None]) -> Configuration:
    """The configuration with its workspace narrowed to the roots that lie within it."""
    workspace = os.path.realpath(configuration.settings.workspace.dir)
    within = [path for uri in roots if (path := _directory(uri)) and is_within(path, workspace)]
    if ignored := len(roots) - len(within):
        note(f"{ignored} of the client's {len(roots)} roots ignored: no visible directories within {workspace}")
    narrowed = os.path.commonpath(within) if within else workspace
    if narrowed == workspace:
        return configuration
    note(f"workspace narrowed to the client's roots: {narrowed}")
    settings = configuration.settings
    section = replace(settings.workspace, dir=narrowed)
    return replace(configuration, settings=replace(settings, workspace=section))


def _directory(uri: str) -> str | None:
    """The real path of a `file:` URI of this machine, if it is a directory."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "\0" in unquote(parts.path):
        return None
    path = os.path.realpath(unquote(parts.path))
    return path if os.path.isdir(path) else None


def is_within(path: str, folder: str) -> bool:
    """Whether it is the folder, or a directory below that no hidden one holds."""
    if os.path.commonpath((path, folder)) != folder:
        return False
    return not any(part.startswith(".") for part in os.path.relpath(path, folder).split("/") if part != ".")
