import pytest

from tests.network import Answer, web_server
from tests.tools.test_http import FILES, context, run, running
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.tool import bind
from toolreeve.tools.html import MAX_INPUT
from toolreeve.tools.web import MAX_LINKS, WEB_TOOLS, extract_links, fetch_url

PAGE = b'<html><title>A page</title><h1>Head</h1><p>Text <a href="/next">next</a></html>'
HTML = {"content-type": "text/html; charset=utf-8"}


async def test_fetch_gives_the_page_as_it_came() -> None:
    async with running(Answer(body=PAGE, headers=HTML)) as (web, ctx):
        output = await run(fetch_url, ctx, url=web.url("/p"))

    assert output.main == PAGE.decode()
    assert output.labels == ("untrusted",)
    assert output.data == {
        "content": PAGE.decode(),
        "status_code": 200,
        "content_type": "text/html; charset=utf-8",
        "size": len(PAGE),
        "url": web.url("/p"),
        "encoding": "text",
        "title": "A page",
    }


@pytest.mark.parametrize(
    ("format", "shown"), [("text", "Head\n\nText next ({next})"), ("markdown", "# Head\n\nText [next]({next})")]
)
async def test_fetch_makes_a_page_readable(format: str, shown: str) -> None:
    async with running(Answer(body=PAGE, headers=HTML)) as (web, ctx):
        output = await run(fetch_url, ctx, url=web.url("/p"), format=format)

    assert output.main == shown.format(next=web.url("/next"))


async def test_a_large_page_is_made_readable_too() -> None:
    async with running(Answer(body=b"<p>word" * 12_000, headers=HTML)) as (web, ctx):
        output = await run(fetch_url, ctx, url=web.url(), format="text")

    assert output.main.count("word") == 12_000


async def test_what_is_not_html_is_left_alone() -> None:
    async with running(Answer(body=b"a <b> c", headers={"content-type": "text/plain"})) as (web, ctx):
        assert (await run(fetch_url, ctx, url=web.url(), format="text")).main == "a <b> c"


async def test_the_user_agent_can_be_chosen() -> None:
    async with running(Answer()) as (web, ctx):
        await run(fetch_url, ctx, url=web.url(), user_agent="MyBot/1.0")

        assert web.received[0].headers["user-agent"] == "MyBot/1.0"


async def test_a_page_is_named_by_where_it_was_found() -> None:
    async with running(Answer()) as (web, ctx):
        web.respond = lambda got: (
            Answer(status=302, headers={"location": "/end"})
            if got.path == "/start"
            else Answer(body=PAGE, headers=HTML)
        )
        assert (await run(fetch_url, ctx, url=web.url("/start"))).data["url"] == web.url("/end")


async def test_links_are_taken_from_html_relative_to_the_base() -> None:
    async with context() as ctx:
        output = await run(
            extract_links,
            ctx,
            html="<html><a href='/page'>Link</a><a href='/page'>Again</a></html>",
            base_url="https://example.com",
        )

    assert output.main == ["https://example.com/page"] * 2
    assert output.data == {
        "links": ["https://example.com/page"] * 2,
        "count": 2,
        "unique_links": ["https://example.com/page"],
    }
    assert output.labels == ("untrusted",)


async def test_links_are_taken_from_a_page() -> None:
    async with running(Answer(body=PAGE, headers=HTML)) as (web, ctx):
        assert (await run(extract_links, ctx, url=web.url("/dir/page"))).main == [web.url("/next")]


async def test_very_many_links_are_cut() -> None:
    async with context() as ctx:
        output = await run(extract_links, ctx, html="<a href=/x>" * (MAX_LINKS + 1), base_url="https://e.example/")

    assert (output.data["count"], output.truncated) == (MAX_LINKS, True)


@pytest.mark.parametrize("args", [{}, {"html": "<a>", "url": "http://127.0.0.1/"}])
async def test_links_need_one_source(args: dict[str, str]) -> None:
    async with context() as ctx:
        with pytest.raises(ToolError) as caught:
            await run(extract_links, ctx, **args)

    assert caught.value.code is ErrorCode.INVALID_PARAMS


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data/", "http://[::1]/", "data:text/html,x"])
async def test_pages_of_forbidden_places_are_not_fetched(url: str) -> None:
    async with web_server() as web, context("*") as ctx:
        for tool in WEB_TOOLS:
            with pytest.raises(ToolError) as caught:
                await run(tool, ctx, url=url)
            assert caught.value.code is ErrorCode.URL_FORBIDDEN
        assert web.connections == 0


def test_effects_are_of_what_is_fetched() -> None:
    assert bind(fetch_url).effects({"url": "https://e.example/"}, FILES) == (Effect(EffectKind.NET, "e.example"),)
    assert bind(extract_links).effects({"html": "<a>"}, FILES) == ()


async def test_a_page_that_is_read_in_part_says_how_to_see_the_rest() -> None:
    page = (b"<p>" + b"word " * 2000) * (MAX_INPUT // 10_000 + 1)
    async with (
        web_server(lambda _: Answer(body=page, headers=HTML)) as web,
        context(f"127.0.0.1:{web.port}", max_body=2 * MAX_INPUT) as ctx,
    ):
        output = await run(fetch_url, ctx, url=web.url(), format="text")

    assert output.truncated
    assert output.data["next"] == f"fetch_url(url='{web.url()}', format='raw')"
