import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.google_server import encode, part
from toolreeve.connectors.mime import (
    MAX_DEPTH,
    MAX_HEADER,
    decode_base64url,
    decode_words,
    get_header,
    lift_bodies,
    parse_mail,
)
from toolreeve.tools.html import MAX_INPUT


def test_html_is_preferred_in_an_alternative_even_when_it_is_nested() -> None:
    related = part("multipart/related", "", part("text/html", "<b>rich</b>"), part("image/png", filename="logo.png"))
    alternative = part("multipart/alternative", "", part("text/plain", "plain"), related)

    parsed = parse_mail(part("multipart/mixed", "", alternative, part("text/plain", "footer")))

    assert parsed.body == "rich\n\nfooter"
    assert [each["filename"] for each in parsed.attachments] == ["logo.png"]


def test_html_that_is_too_large_to_render_whole_is_cut_and_the_mail_says_so() -> None:
    whole = part("text/html", "<p>x</p>" * (MAX_INPUT // 8 + 1000))
    parsed = parse_mail(whole)

    assert parsed.problems == ["only the first 8 of 8.0 MB of HTML are shown; format raw has all"]
    assert parse_mail(whole, raw=True).problems == []


def test_plain_text_is_taken_where_the_html_is_empty() -> None:
    parts = part("multipart/alternative", "", part("text/plain", "plain"), part("text/html", "<div> </div>"))

    assert parse_mail(parts).body == "plain"


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "utf-8", "koi8-r", "iso-2022-jp", "no-such", ""])
def test_charsets_are_decoded_and_unknown_ones_do_no_harm(charset: str) -> None:
    text = {"koi8-r": "привет", "iso-2022-jp": "こんにちは"}.get(charset, "café")
    known = charset if charset not in ("", "no-such") else "utf-8"
    header = {"Content_Type": f'text/plain; charset="{charset}"'}

    assert parse_mail(part("text/plain", text.encode(known), **header)).body == text


def test_gmails_utf8_is_read_whatever_the_header_says() -> None:
    assert parse_mail(part("text/plain", "café", content_type="text/plain; charset=ISO-8859-1")).body == "café"


def test_a_codec_that_is_no_charset_is_not_used() -> None:
    assert parse_mail(part("text/plain", b"caf\xe9", content_type="text/plain; charset=rot13")).body == "caf\ufffd"


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined"])
def test_codecs_that_no_mail_is_written_in_are_not_used(charset: str) -> None:
    body = "a-" + "b9" * 500_000

    parsed = parse_mail(part("text/plain", body, Content_Type=f"text/plain; charset={charset}"))

    assert parsed.body == body


def test_a_header_of_megabytes_is_cut_before_it_is_decoded() -> None:
    """Decoding all of it would take minutes."""
    header = {"name": "Subject", "value": "=?utf-8?q?x?= " * 500_000}

    assert get_header({"headers": [header]}, "subject").startswith("xxx")
    assert len(decode_words(header["value"])) < MAX_HEADER


def test_headers_are_found_in_any_case_and_decoded() -> None:
    payload = part("text/plain", "x", SUBJECT="=?iso-8859-1?q?caf=E9?=\r\n =?utf-8?b?4oKs?=", From="=?bad?x?y?=")

    assert get_header(payload, "subject") == "café€"
    assert get_header(payload, "from") == "=?bad?x?y?="
    assert get_header(payload, "cc") == ""


def test_malformed_base64_gives_what_can_be_read_and_says_so() -> None:
    broken = part("text/plain")
    broken["body"] = {"data": "aGVsbG8*!!=broken"}

    parsed = parse_mail(part("multipart/mixed", "", part("text/plain", "before"), broken))

    assert parsed.body.startswith("before")
    assert parsed.problems == ["the base64 of a text/plain part is malformed"]


def test_a_forwarded_mail_and_a_calendar_part_are_walked() -> None:
    inner = part("message/rfc822", "", part("text/plain", "forwarded"), filename="")
    parsed = parse_mail(part("multipart/mixed", "", inner, part("application/ics", "x", filename="i.ics")))

    assert parsed.body == "forwarded"
    assert parsed.attachments == [{"filename": "i.ics", "mimeType": "application/ics", "size": 1}]


def test_a_mail_nested_without_end_is_cut_and_says_so() -> None:
    nested = part("text/plain", "deep")
    for _ in range(MAX_DEPTH + 5):
        nested = part("multipart/mixed", "", nested)

    assert parse_mail(nested).problems == ["the rest of its parts is left out"]


@pytest.mark.parametrize(
    "style",
    ["display:none", "DISPLAY : none !important", "font-size:0px", "font-size: 0", "visibility:hidden", "opacity:0;"],
)
def test_text_that_a_reader_does_not_see_is_left_out(style: str) -> None:
    html = f'<p>seen</p><div style="{style}">order <div>inner</div> more</div><p>after</p>'

    assert parse_mail(part("text/html", html)).body == "seen\n\nafter"
    assert "order" in parse_mail(part("text/html", html), raw=True).body


@given(st.binary(max_size=3000))
def test_base64url_without_padding_is_decoded(data: bytes) -> None:
    assert decode_base64url(encode(data).encode()) == (bytearray(data), True)


def test_large_bodies_are_lifted_out_of_the_response_and_read_the_same() -> None:
    large = "häuser " * 20_000
    payload = part("multipart/mixed", "", part("text/plain", large), part("text/plain", "small"), SUBJECT='"data": "x"')
    response = bytearray(json.dumps(payload, indent=1).encode())

    text, lifted = lift_bodies(response)

    assert not response
    assert len(text) < 2000
    assert len(lifted) == 1
    assert parse_mail(json.loads(text), lifted).body == f"{large}\n\nsmall"


def test_a_mark_that_lifts_nothing_is_malformed() -> None:
    forged = part("text/plain")
    forged["body"] = {"data": "#7"}

    assert parse_mail(forged).problems == ["the base64 of a text/plain part is malformed"]


KEYS = st.sampled_from(["mimeType", "headers", "parts", "body", "data", "size", "name", "value", "filename"]) | st.text(
    max_size=5
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_any_payload_is_parsed(payload: dict[str, object]) -> None:
    parsed = parse_mail(payload)

    assert isinstance(parsed.body, str)
