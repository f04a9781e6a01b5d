"""Traces, received by a real OTLP receiver: GenAI spans with the caller's trace as parent, and no arguments."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.serve.api.api_server import serving
from tests.serve.mcp.http_server import HEADERS, request
from tests.world import World
from toolreeve.config.sections.record import Record

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@contextmanager
def collecting() -> Iterator[tuple[str, list[Any]]]:
    """The URL of a collector, and the spans it has got."""
    spans: list[Any] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            found = ExportTraceServiceRequest.FromString(body)
            spans.extend(span for each in found.resource_spans for scope in each.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", spans
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


async def test_calls_of_both_doors_are_spans_below_the_callers_own(world: World) -> None:
    with collecting() as (url, spans):
        settings = world.settings(record=Record(otlp_endpoint=url))
        async with serving(world.reeve(settings=settings)) as server:
            await server.call("calculate", {"expression": "41 + 1"}, headers={"traceparent": PARENT})
            await server.call("read_file", {"path": "very-private.txt"})
            said = request(
                "tools/call", {"name": "calculate", "arguments": {"expression": "1"}}, meta={"traceparent": PARENT}
            )
            headers = {**HEADERS, "mcp-method": "tools/call", "mcp-name": "calculate"}
            await server.client.post("/mcp", json=said, headers=headers)
        await asyncio.sleep(0)

    first, second, third = spans
    found = attributes(first)
    assert (first.name, found["gen_ai.operation.name"], found["gen_ai.tool.name"]) == (
        "execute_tool calculate",
        "execute_tool",
        "calculate",
    )
    assert [each.trace_id.hex() == TRACE for each in spans] == [True, False, True]
    assert (first.parent_span_id.hex(), third.parent_span_id.hex()) == ("b7ad6b7169203331", "b7ad6b7169203331")
    assert attributes(second)["error.type"] == "E_FILE_NOT_FOUND"
    assert not any("private" in str(each) or "41 + 1" in str(each) for each in spans)


async def test_the_variable_of_opentelemetry_counts_where_nothing_is_configured(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as (url, spans):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        async with world.reeve() as reeve:
            await reeve.call("calculate", expression="1")

    assert [each.name for each in spans] == ["execute_tool calculate"]


def test_nothing_of_opentelemetry_is_loaded_without_an_endpoint(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace

async def main():
    settings = Settings(workspace=Workspace(dir="."), state=State(dir="state"))
    async with Toolreeve(settings=settings) as reeve:
        await reeve.call("calculate", expression="1")

asyncio.run(main())
print([name for name in sys.modules if name.startswith("opentelemetry.sdk")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path)

    assert done.stdout == "[]\n", done.stderr
