"""What a server was given does not come back from it."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.secrets.redactor import MARK
from toolreeve.core.secrets.scrubber import Scrubber

SECRET = 'open"sesame/1234é'


def test_a_secret_is_redacted_in_every_encoding_and_nothing_else_is() -> None:
    answer = {
        "content": [{"type": "text", "text": f"it is {SECRET}."}, {"data": base64.b64encode(SECRET.encode()).decode()}],
        SECRET: 1,
        "kept": ["sk-abcdefghijklmnopqrstuvwxyz0123456789", 3, None, {"password": "mine"}],
    }

    cleaned = Scrubber([SECRET]).message(answer)

    assert SECRET not in repr(cleaned)
    assert base64.b64encode(SECRET.encode()).decode() not in repr(cleaned)
    assert cleaned["kept"] == answer["kept"]
    assert cleaned["content"][0] == {"type": "text", "text": "it is [redacted]."}


def test_an_answer_without_secrets_is_the_same_object() -> None:
    answer = {"content": [{"type": "text", "text": "nothing"}]}

    assert Scrubber([SECRET]).message(answer) is answer
    assert Scrubber().message(answer) is answer


def test_what_is_learnt_later_is_found_from_then_on() -> None:
    veil = Scrubber()
    veil.learn(["later-secret"])

    assert veil.message({"a": "the later-secret"}) == {"a": "the [redacted]"}


def test_of_renewed_secrets_the_latest_are_redacted() -> None:
    veil = Scrubber([SECRET])
    for number in range(1000):
        veil.learn([f"token-{number:04}-x"])

    assert veil.text(f"token-0999-x token-0990-x {SECRET}") == "[redacted] [redacted] [redacted]"


def test_nothing_is_nested_so_deeply_that_a_secret_hides_in_it() -> None:
    said: dict[str, object] = {"last": SECRET}
    for _ in range(900):
        said = {"more": [said]}

    cleaned = Scrubber([SECRET]).message(said)

    found: Any = cleaned
    while isinstance(found, dict):
        found = found["more"]
        found = found[0] if isinstance(found, list) else found
    assert found == "[redacted]"


@given(st.text(min_size=4, max_size=20), st.text(max_size=40))
def test_no_text_keeps_a_secret(secret: str, around: str) -> None:
    assert secret not in Scrubber([secret]).text(f"{around}{secret}{around}").replace("[redacted]", "")


@pytest.mark.parametrize("left", [4, 9, 18])
@pytest.mark.parametrize(
    "encode", [str, lambda text: base64.b64encode(text.encode()).decode(), lambda text: text.encode().hex()]
)
def test_the_beginning_of_a_secret_at_the_end_of_a_cut_text_is_redacted(
    left: int, encode: Callable[[str], str]
) -> None:
    scrubber = Scrubber(["s3cret-value-of-mine"])
    cut = "output " + encode("s3cret-value-of-mine")[:left]

    assert scrubber.text(cut, is_cut=True) == f"output {MARK}"
    assert scrubber.text(cut) == cut
    assert scrubber.text("output s3c", is_cut=True) == "output s3c"
