"""Stdio transport: a local server, reached over the pipes of its process.

The process ends with the transport. Everything the server writes is read, also outside of the protocol; only the last
of that is kept, to explain a failure.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Literal

from toolreeve.core.visible import visible
from toolreeve.rpc.framing import FrameReader, FrameWriter, NotWritable
from toolreeve.rpc.messages import Message
from toolreeve.upstream.transports import process, sandboxed
from toolreeve.upstream.transports.process import Streams
from toolreeve.upstream.transports.transport import OnLost, OnMessage, ServerUnavailable

_KEPT_OUTPUT = 2000
_EXIT_SECONDS = 1.0
"""Between the end of the output and the exit status, either of which may come first."""


class StdioTransport:
    """`environment` is the server's whole environment; `placement` is where it runs, if sandboxed."""

    kind: Literal["stdio"] = "stdio"
    not_mcp: Literal[False] = False

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: str | None = None,
        placement: "sandboxed.SandboxPlacement | None" = None,
    ) -> None:
        self._argv = argv
        self._environment = environment
        self._directory = directory
        self._placement = placement
        self._output = bytearray()
        self._process: process.ServerProcess | None = None
        self._reader: FrameReader | None = None
        self._writer: FrameWriter | None = None
        self._stderr: int = -1
        self._on_lost: OnLost | None = None
        self._lost_reason: str | None = None
        self._has_closed_output = False

    async def open(self, on_message: OnMessage, on_lost: OnLost) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        try:
            streams = Streams()
            self._process = await self._start(streams)
        except OSError as problem:
            raise ServerUnavailable(f"{self._argv[0]!r}: it cannot be started now: {problem.strerror}") from None
        self._stderr = streams.stderr
        self._loop.add_reader(self._stderr, self._read_stderr)
        self._writer = FrameWriter(streams.stdin)
        self._reader = FrameReader(streams.stdout, on_message, self._keep_line, self._output_closed)
        self._process.ended.add_done_callback(self._exited)

    async def _start(self, streams: Streams) -> process.ServerProcess:
        try:
            if self._placement is not None:
                return await sandboxed.start(self._argv, self._environment, self._directory, self._placement, streams)
            return await process.start(self._argv, self._environment, self._directory, streams)
        except ServerUnavailable as problem:
            streams.close()
            raise ServerUnavailable(f"{self._argv[0]!r}: {problem}") from None
        except BaseException:
            streams.close()
            raise

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:  # noqa: ARG002
        if self._writer is None:
            raise ServerUnavailable(self._lost_reason or "the connection is closed")
        try:
            self._writer.send(message)
        except NotWritable as problem:
            raise ServerUnavailable(str(problem)) from None

    def _read_stderr(self) -> None:
        """A server that floods its error stream is read all the same: it must not block on us."""
        try:
            data = os.read(self._stderr, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._keep(data)
        else:
            self._close_stderr()

    def _close_stderr(self) -> None:
        if self._stderr >= 0:
            self._loop.remove_reader(self._stderr)
            os.close(self._stderr)
            self._stderr = -1

    def _keep_line(self, line: bytes) -> None:
        self._keep(line[-_KEPT_OUTPUT:] + b"\n")

    def _keep(self, data: bytes) -> None:
        self._output += data
        if len(self._output) > 2 * _KEPT_OUTPUT:
            del self._output[:-_KEPT_OUTPUT]

    def last_output(self) -> str:
        return visible(self._output[-_KEPT_OUTPUT:].decode(errors="replace").strip())

    def _output_closed(self, problem: str | None) -> None:
        """The exit status says more than the closed output; it is known a moment later."""
        self._has_closed_output = True
        if problem is not None:
            self._lose(problem)
        elif self._process is not None and self._process.ended.done():
            self._lose(self._process.ended.result())
        else:
            self._loop.call_later(_EXIT_SECONDS, self._lose, "it closed its output")

    def _exited(self, ended: "asyncio.Future[str]") -> None:
        """What it wrote before it ended is still in the pipe, which ends a moment later."""
        if self._on_lost is None:
            self._release()
        elif self._has_closed_output:
            self._lose(ended.result())
        else:
            self._loop.call_later(_EXIT_SECONDS, self._lose, ended.result())

    def _lose(self, reason: str) -> None:
        on_lost = self._on_lost
        self._on_lost = None
        if on_lost is not None:
            self._lost_reason = reason
            if self._stderr >= 0:
                self._read_stderr()
            self._end_process()
            on_lost(reason)

    def _end_process(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._reader is not None:
            self._reader.mute()
        if self._process is not None:
            self._process.end()
            if self._process.ended.done():
                self._release()

    def _release(self) -> None:
        """Once the process tree has ended, nothing more can be read."""
        if self._reader is not None:
            self._reader.close()
        self._close_stderr()

    async def close(self) -> None:
        self._on_lost = None
        self._end_process()
        if self._process is not None:
            await asyncio.shield(self._process.ended)
