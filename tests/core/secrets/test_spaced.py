"""An encoded secret is found however its characters are grouped."""

import base64
import json
import textwrap

import pytest

from toolreeve.core import json as core_json
from toolreeve.core.secrets.redactor import MARK, Redactor
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.core.secrets.spaced import SpacedForms

SECRET = "correct-horse-battery-staple-0123456789-and-then-some-more-of-it"
HEX = SECRET.encode().hex()
BASE64 = base64.b64encode(SECRET.encode()).decode()


def grouped(size: int, between: str) -> str:
    return between.join(textwrap.wrap(HEX, size))


def dump(line: str, ascii_column: str) -> str:
    """As xxd and hexdump -C print it."""
    lines = []
    for start in range(0, len(SECRET), 16):
        part = SECRET[start : start + 16]
        lines.append(line.format(start, part.encode().hex(" "), ascii_column.format(part)))
    return "\n".join(lines)


FORMS = {
    "base64 of 64 columns": "\n".join(textwrap.wrap(BASE64, 64)),
    "base64 of 20 columns": "\n".join(textwrap.wrap(BASE64, 20)),
    "base64 with CRLF": "\r\n".join(textwrap.wrap(BASE64, 64)),
    "base64, indented": "\n    ".join(textwrap.wrap(BASE64, 64)),
    "base64 in JSON": json.dumps("\n".join(textwrap.wrap(BASE64, 64)))[1:-1],
    "hex with spaces": grouped(2, " "),
    "hex with colons": grouped(2, ":").upper(),
    "hex in words": grouped(4, " "),
    "hex in long words": grouped(8, "-"),
    "hex as an array of C": "0x" + grouped(2, ", 0x"),
    "hex as escapes": "\\x" + grouped(2, "\\x"),
    "hex as escapes of a URL": "%" + grouped(2, "%"),
    "hex in lines": "\n".join(textwrap.wrap(HEX, 60)),
    "hexdump": dump("{:08x}  {}  {}", "|{}|"),
    "xxd": dump("{:08x}: {}  {}", "{}"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_redacted_in(form: str) -> None:
    text = f"before {FORMS[form]} after"

    for cleaned in (Redactor([SECRET]).text(text), Scrubber([SECRET]).text(text)):
        assert MARK in cleaned
        assert cleaned.startswith("before ")
        assert cleaned.endswith(" after")
        assert len(cleaned) < len("before  after") + len(MARK) + 40


@pytest.mark.parametrize("form", FORMS)
def test_a_document_is_suspected_of(form: str) -> None:
    redactor = Redactor([SECRET])

    assert redactor.suspects(core_json.dumps({"text": FORMS[form]}))
    assert MARK in redactor.value({"text": FORMS[form]})["text"]
    assert MARK in Scrubber([SECRET]).message({"text": FORMS[form]})["text"]


def test_text_in_groups_that_holds_no_secret_stays() -> None:
    ordinary = "2026-11-18 03:57:40 de:ad:be:ef:00:11\n" + "\n".join(textwrap.wrap("QUJD" * 60, 64))

    assert Redactor([SECRET]).text(ordinary) == ordinary
    assert not SpacedForms([SECRET]).finds(ordinary.encode())


def test_only_the_secret_is_replaced_among_other_bytes() -> None:
    around = "00 01 02 " + grouped(2, " ") + " fd fe ff"

    assert SpacedForms([SECRET]).sub(b"*", around.encode()) == b"00 01 02 * fd fe ff"


def test_short_secrets_have_no_encoded_form() -> None:
    assert not SpacedForms(["abcde"]).finds(b"abcde".hex(" ").encode())
    assert SpacedForms(["abcdef"]).finds(b"abcdef".hex(" ").encode())


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["a0 " * 300_000, "  " * 400_000, "A" * 20 + "\\n" * 300_000, "00000000: " * 90_000])
def test_hostile_text_is_searched_in_linear_time(text: str) -> None:
    assert not SpacedForms([SECRET]).finds(text.encode())
