"""The network tools down the whole road: decided, guarded, labelled and recorded."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from tests.network import Answer, listening, web_server
from tests.world import World
from toolreeve import ExecutionContext, PermissionMode, PermissionPolicy, Toolreeve
from toolreeve.config import Network, Settings
from toolreeve.core.errors import ConfigError, ErrorCode
from toolreeve.core.result import ToolResult


def opened(world: World, port: int, **more: Any) -> Settings:
    return world.settings(network=Network(allow=(f"127.0.0.1:{port}",), **more))


def code(result: ToolResult) -> ErrorCode | None:
    return None if result.error is None else result.error.code


async def test_a_get_runs_unasked_and_its_answer_is_labelled_and_recorded(world: World) -> None:
    async with (
        web_server(lambda _: Answer(body=b"hello")) as web,
        world.reeve(settings=opened(world, web.port)) as reeve,
    ):
        result = await reeve.call("http_get", url=web.url("/x"))
        entries = await reeve.audit.recent(last_n=1, filters={})

    assert result.output == "hello"
    assert list(result.meta.labels) == ["untrusted", "public"]
    assert result.to_flat()["status_code"] == 200
    assert entries[0]["tool"] == "http_get"


async def test_a_post_is_asked_about_and_a_get_request_is_not(world: World) -> None:
    async with web_server() as web, world.reeve(settings=opened(world, web.port)) as reeve:
        posted = await reeve.call("http_post", url=web.url(), data={"a": 1})
        got = await reeve.call("http_request", url=web.url())
        put = await reeve.call("http_request", url=web.url(), method="PUT")
        unknown = await reeve.call("http_request", url=web.url(), method="BREW")

    assert [code(each) for each in (posted, got, put, unknown)] == [
        ErrorCode.PERMISSION,
        None,
        ErrorCode.PERMISSION,
        ErrorCode.HTTP_METHOD,
    ]
    assert [request.method for request in web.received] == ["GET"]


async def test_the_guard_stands_in_every_mode(world: World) -> None:
    bypass = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
    async with web_server() as web, world.reeve(policy=bypass) as reeve:
        results = [await reeve.call(tool, url=web.url()) for tool in ("http_get", "fetch_url", "extract_links")]

    assert [code(result) for result in results] == [ErrorCode.URL_FORBIDDEN] * 3
    assert web.connections == 0


async def test_the_configured_time_limit_holds_where_the_call_names_none(world: World) -> None:
    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(hang) as port, world.reeve(settings=opened(world, port, timeout=0.1)) as reeve:
        result = await reeve.call("http_get", url=f"http://127.0.0.1:{port}/")

    assert code(result) is ErrorCode.HTTP_TIMEOUT


async def test_fetched_links_can_be_chained(world: World) -> None:
    page = b'<a href="/a">a</a><a href="/b">b</a>'
    async with (
        web_server(lambda _: Answer(body=page, headers={"content-type": "text/html"})) as web,
        world.reeve(settings=opened(world, web.port)) as reeve,
    ):
        results = await reeve.chain(
            [
                {"tool_name": "fetch_url", "params": {"url": web.url()}},
                {
                    "tool_name": "extract_links",
                    "params": {"html": "{{previous.content}}", "base_url": "https://example.com"},
                },
            ]
        )

    assert results[-1].output == ["https://example.com/a", "https://example.com/b"]


def test_an_invalid_rule_is_reported_with_its_place(world: World) -> None:
    (world.workspace / "toolreeve.toml").write_text('[network]\n\ndeny = ["http://nonsense"]\n')

    with pytest.raises(ConfigError) as caught:
        Toolreeve(workspace=world.workspace)

    assert (caught.value.key, caught.value.source) == ("network.deny", f"{world.workspace}/toolreeve.toml:3")


def test_the_http_library_is_not_loaded_before_it_is_needed() -> None:
    names = ["httpx2", "httpcore2", "idna", "brotli", "h2", "anyio"]
    look = f"import sys, toolreeve.runtime.toolreeve; print([name for name in {names} if name in sys.modules])"

    assert subprocess.run([sys.executable, "-c", look], capture_output=True, check=True).stdout == b"[]\n"
