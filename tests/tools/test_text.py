import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.file_tools import refusal
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.tools import text
from toolreeve.tools.text import Memory, find_encoding, read_page

UTF8 = find_encoding("utf-8")
contents = st.text(st.sampled_from("ab\n\rä€𝄞 "), max_size=80)


def pages(content: str, encoding: str, count: int) -> list[str]:
    source = Memory(content.encode(encoding))
    found, line = [], 1
    while True:
        page = read_page(source, "x", find_encoding(encoding), line=line, count=count)
        found.append(page.text)
        if page.next_line is None:
            return found
        line = page.next_line


@given(content=contents, count=st.integers(1, 5), encoding=st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-16-le"]))
def test_pages_of_lines_add_up_to_the_text_and_hold_no_more_than_asked(content: str, count: int, encoding: str) -> None:
    found = pages(content, encoding, count)

    assert "".join(found) == content
    assert all(page.count("\n") <= count for page in found)


@given(content=contents.filter(bool), line=st.integers(1, 20))
def test_a_page_begins_at_the_line_asked_for(content: str, line: int) -> None:
    lines = content.split("\n")
    source = Memory(content.encode())
    if line > len(lines):
        assert refusal(lambda: read_page(source, "x", UTF8, line=line)) is ErrorCode.INVALID_PARAMS
        return

    page = read_page(source, "x", UTF8, line=line)

    assert page.text == "\n".join(lines[line - 1 :])
    assert page.lines == text.count_lines(content)


@given(data=st.binary(max_size=60), at=st.integers(0, 70))
def test_any_bytes_are_text_or_a_clear_refusal(data: bytes, at: int) -> None:
    found = refusal(lambda: read_page(Memory(data), "x", UTF8, byte=at))

    assert found in (None, ErrorCode.READ_ERROR, ErrorCode.INVALID_PARAMS)


def test_a_line_far_into_a_large_text_is_found() -> None:
    source = Memory(b"x\n" * 4_000_000 + b"here\n")

    assert read_page(source, "x", UTF8, line=4_000_001).text == "here\n"


def test_a_character_cut_by_the_end_of_a_page_is_left_for_the_next() -> None:
    content = "a" + "€" * text.PAGE_BYTES
    source = Memory(content.encode())

    first = read_page(source, "x", UTF8)
    second = read_page(source, "x", UTF8, byte=first.next_byte)

    assert content.startswith(first.text + second.text)


def test_wide_text_that_is_too_large_is_refused_with_what_to_do() -> None:
    with pytest.raises(ToolError, match="convert it to UTF-8"):
        read_page(Memory(b"\0" * (text.WIDE_BYTES + 2)), "x", find_encoding("utf-16"))
