"""Cost of the network guard: requests against a bare client, the decision, memory.

The server runs in its own process on loopback, so that only the client's work is counted.
"""

import asyncio
import gzip
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.measure import Row, micros
from toolreeve.core.http import HttpRequest
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import MEGABYTE, NetworkGuard, NetworkSettings

REQUESTS = 400
ROUNDS = 7
CAP = 10 * MEGABYTE
PAGE = b"x" * 4096
BOMBS = ("plain", "gzip", "br", "zstd", "chunks", "wide", "very wide")


async def requests() -> list[Row]:
    """CPU of a guarded GET of 4 KB over a kept connection, against the same by a bare httpx2 client."""
    rows = []
    async with _server("page") as port:
        url = f"http://127.0.0.1:{port}/"
        client = GuardedHttp(NetworkGuard(NetworkSettings(allow=(f"127.0.0.1:{port}",))))
        import httpx2

        async with httpx2.AsyncClient(trust_env=False) as bare:
            for together in (1, 32):
                ours, theirs = await _alternate(
                    lambda: client.send(HttpRequest(method="GET", url=url)), lambda: bare.get(url), together
                )
                rows.append(
                    Row(
                        name=f"guarded GET of 4 KB, {together} at once, CPU against bare httpx2",
                        value=f"{micros(ours)} against {micros(theirs)}",
                        ratio=ours / theirs,
                        p50=ours,
                        target="≤ 1.25×",
                        met=ours <= 1.25 * theirs,
                    )
                )
        await client.close()
    return rows


async def _alternate(
    ours: Callable[[], Awaitable[object]], theirs: Callable[[], Awaitable[object]], together: int
) -> tuple[float, float]:
    """CPU seconds for one request of each, in rounds that take turns; the median."""
    spent: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 1):
        for work, times in zip((ours, theirs), spent, strict=True):
            began = time.process_time()
            for _ in range(REQUESTS // together):
                await asyncio.gather(*(work() for _ in range(together)))
            if number:  # the first round only warms up
                times.append((time.process_time() - began) / (REQUESTS // together * together))
    return statistics.median(spent[0]), statistics.median(spent[1])


async def decision() -> list[Row]:
    """The guard's own part of a request: reading the URL, the rules, and judging an address."""
    from toolreeve.core.urls import parse_url

    guard = NetworkGuard(NetworkSettings(allow=("*", "10.0.0.0/8:8080"), deny=("*.bad.example", "1.2.3.0/24")))
    address = parse_url("http://8.8.8.8/").address
    assert address is not None

    def judge() -> None:
        target = parse_url("https://api.example.com/v1/items?page=2")
        guard.judge(target.host, target.port, "GET", [address])

    judge()
    times = []
    for _ in range(50_000):
        began = time.perf_counter()
        judge()
        times.append(time.perf_counter() - began)
    times.sort()
    middle, late = times[len(times) // 2], times[int(len(times) * 0.99)]
    return [
        Row(
            name="the guard's decision about a URL and its address",
            value=micros(middle),
            p50=middle,
            p99=late,
            target="≤ 20 µs",
            met=middle <= 20e-6,
        )
    ]


async def memory() -> list[Row]:
    """How much more memory a process has used after a read that is cut at 10 MB, whatever the server sends."""
    rows = []
    for kind in BOMBS:
        async with _server(kind) as port:
            measured = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bench.network_bench", "read", str(port), stdout=subprocess.PIPE
            )
            output, _ = await measured.communicate()
        used = float(output) / CAP
        rows.append(
            Row(
                name=f"memory of a read capped at 10 MB, server sends {kind}",
                value=f"{used:.2f}× the cap",
                ratio=used,
                target="≤ 3× the cap",
                met=used <= 3,
            )
        )
    return rows


async def network() -> list[Row]:
    return [*await requests(), *await decision(), *await memory()]


async def _read(port: int) -> None:
    client = GuardedHttp(NetworkGuard(NetworkSettings(allow=(f"127.0.0.1:{port}",))))
    await client.send(HttpRequest(method="GET", url=f"http://127.0.0.1:{port}/small"))
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    reply = await client.send(HttpRequest(method="GET", url=f"http://127.0.0.1:{port}/"))
    if not reply.truncated:
        raise SystemExit(f"the answer of {len(reply.body)} bytes was not cut")
    reply.text()
    print(_resident("VmHWM") - before)


def _resident(what: str) -> int:
    """Bytes of this process that are in memory, now or at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


@asynccontextmanager
async def _server(kind: str) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.network_bench", "serve", kind, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def _serve(kind: str) -> None:
    head, pieces = _answer(kind)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                if kind == "page" or b"/small" in request:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4096\r\n\r\n" + PAGE)
                    continue
                writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _answer(kind: str) -> tuple[bytes, list[bytes]]:
    """Headers and pieces of an answer that unpacks to 200 MB."""
    if kind in ("page", "plain"):
        return b"", [bytes(65536)] * 3200
    if kind == "wide":
        return b"", ["☃".encode(), *[b"x" * 65536] * 3200]
    if kind == "very wide":
        return b"", [*[b"x" * 65536] * 150, "😀".encode(), *[b"x" * 65536] * 3000]
    if kind == "chunks":
        return b"transfer-encoding: chunked\r\n", [b"1000\r\n" + bytes(4096) + b"\r\n"] * 50_000
    return f"content-encoding: {kind}\r\n".encode(), [_pack(kind, bytes(200 * MEGABYTE))]


def _pack(kind: str, data: bytes) -> bytes:
    from toolreeve.guard.network.body import _zstd

    if kind == "gzip":
        return gzip.compress(data, 1)
    if kind == "br":
        import brotli

        return bytes(brotli.compress(data, quality=1, lgwin=24))
    library = _zstd()
    return bytes(library.compress(data, options={library.CompressionParameter.window_log: 23}))


async def _main(arguments: list[str]) -> None:
    match arguments:
        case ["serve", kind]:
            await _serve(kind)
        case ["read", port]:
            await _read(int(port))
        case _:
            for row in await network():
                ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
                print(f"{row.name}: {row.value} {ratio} ({row.target}: {'met' if row.met else 'MISSED'})")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
