from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.tools.html import MAX_INPUT, html_to_text, links_of, title_of
from toolreeve.tools.markdown import html_to_markdown
from toolreeve.tools.markup import attributes, tokens


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<h1>Head</h1>body", "Head\n\nbody"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("a<br>b<br/><br />c", "a\nb\n\nc"),
        ("<p>much   white\n\tspace </p>", "much white space"),
        ("<b>no</b>space <i>and</i> space", "nospace and space"),
        ('see <a href="https://e.example/x?a=1&amp;b=2">the page</a>.', "see the page (https://e.example/x?a=1&b=2)."),
        ('<a href="https://e.example">https://e.example</a>', "https://e.example"),
        ('<a href="mailto:a@b.example">a@b.example</a>', "a@b.example"),
        ("<a href='#top'>up</a> <a href='javascript:x()'>run</a> <a>plain</a>", "up run plain"),
        ("<a href=x>one<a href=y>two", "one (x)two (y)"),
        ("<ul><li>one<li>two</ul>", "- one\n- two"),
        ("<ul><li><p>one</p></li><li>two<ul><li>deep</ul></ul>after", "- one\n- two\n  - deep\n\nafter"),
        ("<ol start=3><li>c</li><li>d</li></ol>", "3. c\n4. d"),
        ("<table><tr><th>a<th>b<tr><td>1</td><td>2</td></tr></table>", "a\tb\n1\t2"),
        ("<table><tr><td></td><td>second</td></tr></table>", "\tsecond"),
        ("<table><tr><td><p>a</p></td><td><div>b</div></td></tr></table>", "a\tb"),
        ("<pre>  keep\n   this</pre>", "  keep\n   this"),
        ("&lt;b&gt; &amp;amp; &copy; &#65;&#x42; &nbsp;x", "<b> &amp; © AB \xa0x"),
        ("<script>if (a < b) alert('</p>')</script><style>p{}</style>shown", "shown"),
        ("<SCRIPT>x</SCRIPT >shown", "shown"),
        ("<title>hidden</title><template>hidden</template>shown", "shown"),
        ("<textarea><b>&amp;</textarea>", "<b>&"),
        ("a<!-- b --><!-->c<!--->d<!-- --!>e", "acde"),
        ("<!doctype html><?php x ?>a</ b>c<!x>", "ac"),
        ("1 < 2 and 3<4 <", "1 < 2 and 3<4 <"),
        ('<p title="a > b">x</p>', "x"),
        ("", ""),
    ],
)
def test_html_reads_as_text(html: str, text: str) -> None:
    assert html_to_text(html) == text


def test_links_are_made_absolute_where_the_base_is_known() -> None:
    assert html_to_text("<a href=../y>y</a>", "https://e.example/a/b/") == "y (https://e.example/a/y)"


@pytest.mark.parametrize("unclosed", ["<script>x", "<style>x", "<!-- x", '<a href="x', "<title>x", "<p", "<!x", "</p"])
def test_what_is_never_closed_swallows_the_rest(unclosed: str) -> None:
    assert html_to_text(f"before{unclosed} after").strip() == "before"


def test_html_reads_as_markdown() -> None:
    page = (
        "<h2>Head</h2><p>Some <b>bold</b>, <em>slanted</em> and <code>a*b</code> text * here.</p>"
        "<ul><li>one<li>two</ul>"
        "<table><tr><th>a<th>b</tr><tr><td>1<td>2</tr></table><pre><code>x = [1]</code></pre>"
        "<blockquote>said</blockquote>"
        '<img src="/i.png" alt="a [picture]"><hr><a href="/x (y)">link</a>'
    )

    assert html_to_markdown(page, "https://e.example/") == (
        "## Head\n\nSome **bold**, *slanted* and `a*b` text \\* here.\n\n- one\n- two\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```\nx = [1]\n```\n\n> said\n\n"
        "![a \\[picture\\]](https://e.example/i.png)\n---\n\n[link](https://e.example/x%20%28y%29)"
    )


def test_links_are_listed_in_order_relative_to_the_base() -> None:
    page = (
        '<base href="/b/"><base href="/c/"><a href=x>1</a><A HREF="//o.example/y">2</A><area href="z">'
        '<a href="#f">f</a><a href=" javascript:x">j</a><a href="mailto:a@b">m</a><a>n</a><!-- <a href=no> -->'
        "<script><a href=no></script><a href=x>again</a>"
    )

    assert links_of(page, "https://h.example/") == [
        "https://h.example/b/x",
        "https://o.example/y",
        "https://h.example/b/z",
        "mailto:a@b",
        "https://h.example/b/x",
    ]


def test_the_title_is_found() -> None:
    assert title_of("<html><head><title> A &amp;\n B </title>") == "A & B"
    assert title_of("<p>none") == ""
    assert title_of("<title></title>") == ""


def test_the_first_of_two_attributes_counts() -> None:
    assert attributes("""HREF='a' href="b" x=y&lt;z checked data-q = "1" """) == {
        "href": "a",
        "x": "y<z",
        "checked": "",
        "data-q": "1",
    }


N = 300_000
HOSTILE = {
    "nested blocks": "<div>" * 100_000 + "x" + "</div>" * 100_000,
    "nested lists": "<ul><li>" * 100_000,
    "nested quotes": "<blockquote>" * 100_000,
    "nested tables": "<table><tr><td>" * 50_000,
    "mis-nested formatting": "<p>" + "".join(f"<b id={n}>" for n in range(20_000)) + "<p>a" * 20_000,
    "open quotes": "<a x='" * N,
    "open tags": "<a " * N,
    "angles": "<" * N,
    "comments": "<!--" * N,
    "almost closed comments": "<!-- --" + "-" * N,
    "scripts": "<script></scrip" * N,
    "declarations": "<!x" * N,
    "equals": "<a " + "=" * N + ">",
    "attributes": "<a " + "x " * N + ">y</a>",
    "blank attribute": "<a href" + " " * N + "=x>y",
    "ampersands": "&" * N,
    "long reference": "&#" + "9" * N + ";",
    "long hex reference": "&#x" + "f" * N + ";",
    "long name": "&" + "a" * N,
    "links": "<a href=x>y" * (N // 4),
    "cells": "<tr>" + "<td>" * N,
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
@pytest.mark.parametrize("render", [html_to_text, html_to_markdown, links_of])
def test_hostile_pages_give_no_more_than_their_share(name: str, render: Callable[[str], Sequence[object]]) -> None:
    """Anything beyond linear would not end here in time."""
    assert len(render(HOSTILE[name])) <= 20 * len(HOSTILE[name])


def test_a_hundred_megabytes_are_read_as_far_as_the_limit() -> None:
    page = ("<p>" + "word " * 2000) * 10_000

    assert MAX_INPUT * 0.9 < len(html_to_text(page)) < MAX_INPUT


@given(st.text(alphabet="<>/!-='\"& abpsx#;123\n\t", max_size=200))
def test_any_text_is_html(text: str) -> None:
    for render in (html_to_text, html_to_markdown):
        assert isinstance(render(text), str)
    links_of(text)
    assert all(isinstance(part, str) for token in tokens(text) for part in token)


@given(st.text(alphabet="abc &<>é☃", max_size=60))
def test_escaped_text_comes_back(text: str) -> None:
    import html

    words = " ".join(text.split(" ")).strip(" ")
    assert html_to_text(f"<p>{html.escape(words)}</p>") == " ".join(words.split())
