"""What a server was given does not come back from it."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from toolreeve.remote.veil import Veil

SECRET = 'open"sesame/1234é'


def test_a_secret_is_found_in_every_guise_and_nothing_else_is_touched() -> None:
    answer = {
        "content": [{"type": "text", "text": f"it is {SECRET}."}, {"data": base64.b64encode(SECRET.encode()).decode()}],
        SECRET: 1,
        "kept": ["sk-abcdefghijklmnopqrstuvwxyz0123456789", 3, None, {"password": "mine"}],
    }

    cleaned = Veil([SECRET]).over(answer)

    assert SECRET not in repr(cleaned)
    assert base64.b64encode(SECRET.encode()).decode() not in repr(cleaned)
    assert cleaned["kept"] == answer["kept"]
    assert cleaned["content"][0] == {"type": "text", "text": "it is [redacted]."}


def test_an_answer_without_secrets_is_the_same_object() -> None:
    answer = {"content": [{"type": "text", "text": "nothing"}]}

    assert Veil([SECRET]).over(answer) is answer
    assert Veil().over(answer) is answer


@given(st.text(min_size=4, max_size=20), st.text(max_size=40))
def test_no_text_keeps_a_secret(secret: str, around: str) -> None:
    assert secret not in Veil([secret]).text(f"{around}{secret}{around}").replace("[redacted]", "")
