import json
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tests.network import Answer, WebServer, web_server
from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context, Services
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, bind
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import HostsResolver
from toolreeve.tools.http import HTTP_TOOLS, http_delete, http_get, http_post, http_put, http_request

FILES = cast(Any, None)
"""These tools touch no files."""


@asynccontextmanager
async def context(*allow: str, max_body: int = 100_000) -> AsyncIterator[Context]:
    settings = NetworkSettings(allow=allow, max_body=max_body)
    client = GuardedHttp(NetworkGuard(settings, HostsResolver({})))
    services = Services(files=FILES, audit=FILES, models=FILES, undo=FILES, processes=FILES, now=time.time, http=client)
    try:
        yield Context(ToolCall(tool="x", args={}, session="s"), services)
    finally:
        await client.close()


@asynccontextmanager
async def running(answer: Answer) -> AsyncIterator[tuple[WebServer, Context]]:
    async with web_server(lambda _: answer) as web, context(f"127.0.0.1:{web.port}") as ctx:
        yield web, ctx


async def run(tool: AnyFunctionTool, ctx: Context, **args: Any) -> Output:
    bound = bind(tool)
    return await bound.run(bound.input.parse(args), ctx)


async def test_get_gives_status_headers_body_and_success() -> None:
    async with running(Answer(body=b"hello", headers={"content-type": "text/plain"})) as (web, ctx):
        output = await run(http_get, ctx, url=web.url("/x"))

    assert output.main == "hello"
    assert output.labels == ("untrusted",)
    assert output.data == {
        "status_code": 200,
        "headers": {"content-type": "text/plain", "content-length": "5"},
        "body": "hello",
        "success": True,
        "url": web.url("/x"),
        "encoding": "text",
    }


async def test_an_error_status_is_an_answer_and_says_so() -> None:
    async with running(Answer(status=404, body=b"no such thing")) as (web, ctx):
        output = await run(http_get, ctx, url=web.url())

    assert (output.data["status_code"], output.data["success"], output.main) == (404, False, "no such thing")


@pytest.mark.parametrize(
    ("data", "headers", "body", "content_type"),
    [
        ({"a": 1}, {}, b'{"a":1}', "application/json"),
        ([1, 2], {}, b"[1,2]", "application/json"),
        ('{"a": 1}', {}, b'{"a": 1}', "application/json"),
        ("plain", {}, b"plain", "text/plain; charset=utf-8"),
        ("ü", {"Content-Type": "x/y"}, "ü".encode(), "x/y"),
        ({"a": "b c", "d": [1, 2]}, {"content-type": "application/x-www-form-urlencoded"}, b"a=b+c&d=1&d=2", None),
        (None, {}, b"", None),
    ],
)
@pytest.mark.parametrize("tool", [http_post, http_put, http_delete])
async def test_data_is_sent_as_it_is_meant(
    tool: AnyFunctionTool, data: Any, headers: dict[str, str], body: bytes, content_type: str | None
) -> None:
    async with running(Answer(status=201)) as (web, ctx):
        output = await run(tool, ctx, url=web.url(), data=data, headers=headers)

        got = web.received[0]
        assert (got.method, got.body) == (tool.name.removeprefix("http_").upper(), body)
        assert content_type is None or got.headers["content-type"] == content_type
        assert output.data["status_code"] == 201


async def test_request_shows_ten_kilobytes_and_says_how_to_see_more() -> None:
    async with running(Answer(body=b"x" * 20_000)) as (web, ctx):
        output = await run(http_request, ctx, url=web.url())

    assert (len(output.main), output.truncated) == (10_240, True)
    assert output.data["next"] == f"http_get(url='{web.url()}')"


async def test_a_body_beyond_the_cap_is_truncated_and_says_how_to_go_on() -> None:
    async with running(Answer(body=b"x" * 200_000)) as (web, ctx):
        output = await run(http_get, ctx, url=web.url())

    assert (len(output.main), output.truncated) == (100_000, True)
    assert "'Range': 'bytes=100000-'" in output.data["next"]


@pytest.mark.parametrize("method", ["get", "HEAD", "Options", "POST", "PUT", "PATCH", "DELETE"])
async def test_request_takes_the_common_methods_in_any_case(method: str) -> None:
    async with running(Answer()) as (web, ctx):
        await run(http_request, ctx, url=web.url(), method=method)

        assert web.received[0].method == method.upper()


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "BREW", "GET /x HTTP/1.1\r\nX:", ""])
async def test_another_method_is_refused_with_its_own_code(method: str) -> None:
    async with running(Answer()) as (web, ctx):
        with pytest.raises(ToolError) as caught:
            await run(http_request, ctx, url=web.url(), method=method)

        assert caught.value.code is ErrorCode.HTTP_METHOD
        assert web.connections == 0


async def test_a_get_with_data_is_a_mistake() -> None:
    async with running(Answer()) as (web, ctx):
        with pytest.raises(ToolError) as caught:
            await run(http_request, ctx, url=web.url(), data={"a": 1})

    assert caught.value.code is ErrorCode.INVALID_PARAMS


@pytest.mark.parametrize("timeout", [0, 0.5, 301, -1])
async def test_a_timeout_beyond_the_bounds_is_refused(timeout: float) -> None:
    async with running(Answer()) as (web, ctx):
        for tool in HTTP_TOOLS:
            with pytest.raises(ToolError) as caught:
                await run(tool, ctx, url=web.url(), timeout=timeout)
            assert caught.value.code is ErrorCode.INVALID_PARAMS


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "http://localhost/", "file:///etc/passwd", "nonsense", ""])
async def test_a_forbidden_url_is_refused(url: str) -> None:
    async with context("*") as ctx:
        for tool in HTTP_TOOLS:
            with pytest.raises(ToolError) as caught:
                await run(tool, ctx, url=url)
            assert caught.value.code is ErrorCode.URL_FORBIDDEN


async def test_without_a_guard_nothing_is_reached() -> None:
    services = Services(files=FILES, audit=FILES, models=FILES, undo=FILES, processes=FILES, now=time.time)
    with pytest.raises(ToolError) as caught:
        await run(http_get, Context(ToolCall(tool="x", args={}), services), url="http://public.example/")

    assert caught.value.code is ErrorCode.URL_FORBIDDEN


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=iso-8859-1", b"caf\xe9 \x80", "café €"),
        ("text/plain; charset=Shift_JIS", "日本".encode("cp932"), "日本"),
        ("text/html", '<meta charset="windows-1251">Привет'.encode("cp1251"), '<meta charset="windows-1251">Привет'),
        ("text/plain", "naïve ☃".encode(), "naïve ☃"),
        ("text/plain", b"caf\xe9", "café"),
        ("text/plain", b"\xef\xbb\xbfmarked", "marked"),
        ("text/plain; charset=latin-1", b"\xff\xfeh\0i\0", "hi"),
        ("text/plain; charset=utf-8", b"bad \xff byte", "bad \ufffd byte"),
        ("text/plain; charset=zip", b"plain", "plain"),
        ("text/plain; charset=punycode", b"plain", "plain"),
        ("text/plain; charset=unicode_escape", b"\\x41", "\\x41"),
    ],
)
async def test_text_is_read_in_the_encoding_it_was_written_in(content_type: str, body: bytes, text: str) -> None:
    async with running(Answer(body=body, headers={"content-type": content_type})) as (web, ctx):
        assert (await run(http_get, ctx, url=web.url())).main == text


async def test_a_cut_within_a_character_drops_only_that_character() -> None:
    async with running(Answer(body=b"x" + "☃".encode() * 50_000)) as (web, ctx):
        assert (await run(http_get, ctx, url=web.url())).main == "x" + "☃" * 19_999


@pytest.mark.parametrize("content_type", ["image/png", "application/octet-stream", ""])
async def test_what_is_no_text_comes_as_base64(content_type: str) -> None:
    body = b"\x89PNG\0\1\2"
    async with running(Answer(body=body, headers={"content-type": content_type})) as (web, ctx):
        output = await run(http_get, ctx, url=web.url())

    assert (output.data["encoding"], b64decode(output.main)) == ("base64", body)
    json.dumps(output.data)


@pytest.mark.parametrize(
    ("tool", "danger"),
    [
        (http_get, DangerLevel.SAFE),
        (http_post, DangerLevel.MEDIUM),
        (http_put, DangerLevel.MEDIUM),
        (http_delete, DangerLevel.HIGH),
    ],
)
def test_each_tool_has_its_danger(tool: AnyFunctionTool, danger: DangerLevel) -> None:
    assert bind(tool).danger({"url": "http://x.example/"}) is danger


@pytest.mark.parametrize(
    ("method", "danger"),
    [
        ("GET", DangerLevel.SAFE),
        ("head", DangerLevel.SAFE),
        ("POST", DangerLevel.MEDIUM),
        (" patch", DangerLevel.MEDIUM),
        ("DELETE", DangerLevel.HIGH),
        ("BREW", DangerLevel.SAFE),
    ],
)
def test_the_danger_of_a_request_is_that_of_its_method(method: str, danger: DangerLevel) -> None:
    assert bind(http_request).danger({"url": "http://x.example/", "method": method}) is danger


def test_effects_name_the_host_that_is_really_meant() -> None:
    assert bind(http_get).effects({"url": "HTTP://ExAmple.COM.:80/x"}, FILES) == (
        Effect(EffectKind.NET, "example.com"),
    )
    assert bind(http_post).effects({"url": "http://0x7f.1/"}, FILES) == (
        Effect(EffectKind.NET, "127.0.0.1"),
        Effect(EffectKind.SEND, "127.0.0.1"),
    )
    assert bind(http_request).effects({"url": "no url", "method": "PUT"}, FILES)[1] == Effect(EffectKind.SEND, "no url")
