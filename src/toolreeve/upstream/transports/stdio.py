"""How is a server on this machine spoken to? Over the pipes of its process, which ends with the line.

All it writes is read, also beside the protocol, and only the last of that is kept: for whoever asks why it failed.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Literal

from toolreeve.core.visible import visible
from toolreeve.upstream.transports import process, sandboxed
from toolreeve.upstream.transports.framing import FrameReader, FrameWriter
from toolreeve.upstream.transports.process import Streams
from toolreeve.upstream.transports.transport import Hear, Lost, Message, ServerUnavailable

_WORDS = 2000
_LAST_MOMENT = 1.0


class StdioTransport:
    """`environment` is all that the server finds in its own; `place` is where it runs, if not freely."""

    kind: Literal["stdio"] = "stdio"
    unspoken: Literal[False] = False

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: str | None = None,
        place: "sandboxed.SandboxPlace | None" = None,
    ) -> None:
        self._argv, self._environment, self._directory, self._place = argv, environment, directory, place
        self._words = bytearray()
        self._child: process.ServerProcess | None = None
        self._reader: FrameReader | None = None
        self._writer: FrameWriter | None = None
        self._stderr: int = -1
        self._lost: Lost | None = None
        self._reason: str | None = None
        self._silent = False

    async def open(self, hear: Hear, lost: Lost) -> None:
        self._loop, self._lost = asyncio.get_running_loop(), lost
        try:
            streams = Streams()
            self._child = await self._start(streams)
        except OSError as problem:
            raise ServerUnavailable(
                f"{self._argv[0]!r}: this machine cannot start it now: {problem.strerror}"
            ) from None
        self._stderr = streams.stderr
        self._loop.add_reader(self._stderr, self._overhear)
        self._writer = FrameWriter(streams.stdin)
        self._reader = FrameReader(streams.stdout, hear, self._keep_line, self._output_closed)
        self._child.ended.add_done_callback(self._ended)

    async def _start(self, streams: Streams) -> process.ServerProcess:
        try:
            if self._place is not None:
                return await sandboxed.start(self._argv, self._environment, self._directory, self._place, streams)
            return await process.start(self._argv, self._environment, self._directory, streams)
        except ServerUnavailable as problem:
            streams.close()
            raise ServerUnavailable(f"{self._argv[0]!r}: {problem}") from None
        except BaseException:
            streams.close()
            raise

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:  # noqa: ARG002
        if self._writer is None:
            raise ServerUnavailable(self._reason or "the line is closed")
        self._writer.send(message)

    def _overhear(self) -> None:
        """A server that floods its error stream is read all the same: it must not stop for us."""
        try:
            said = os.read(self._stderr, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if said:
            self._keep(said)
        else:
            self._close_stderr()

    def _close_stderr(self) -> None:
        if self._stderr >= 0:
            self._loop.remove_reader(self._stderr)
            os.close(self._stderr)
            self._stderr = -1

    def _keep_line(self, line: bytes) -> None:
        self._keep(line[-_WORDS:] + b"\n")

    def _keep(self, said: bytes) -> None:
        self._words += said
        if len(self._words) > 2 * _WORDS:
            del self._words[:-_WORDS]

    def last_words(self) -> str:
        return visible(self._words[-_WORDS:].decode(errors="replace").strip())

    def _output_closed(self, problem: str | None) -> None:
        """How it ended says more than that it closed its output; it is known a moment later."""
        self._silent = True
        if problem is not None:
            self._lose(problem)
        elif self._child is not None and self._child.ended.done():
            self._lose(self._child.ended.result())
        else:
            self._loop.call_later(_LAST_MOMENT, self._lose, "it closed its output")

    def _ended(self, ended: "asyncio.Future[str]") -> None:
        """What it said before its end is still in the pipe, and ends there a moment later."""
        if self._lost is None:
            self._release()
        elif self._silent:
            self._lose(ended.result())
        else:
            self._loop.call_later(_LAST_MOMENT, self._lose, ended.result())

    def _lose(self, reason: str) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            self._reason = reason
            if self._stderr >= 0:
                self._overhear()
            self._hang_up()
            lost(reason)

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._reader is not None:
            self._reader.mute()
        if self._child is not None:
            self._child.end()
            if self._child.ended.done():
                self._release()

    def _release(self) -> None:
        """When nothing of it is left, nothing will be read any more."""
        if self._reader is not None:
            self._reader.close()
        self._close_stderr()

    async def close(self) -> None:
        self._lost = None
        self._hang_up()
        if self._child is not None:
            await asyncio.shield(self._child.ended)
