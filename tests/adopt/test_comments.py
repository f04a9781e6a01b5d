import tomllib

from hypothesis import given
from hypothesis import strategies as st

from toolreeve.adopt.comments import toml_lines


def test_comments_read_as_they_did() -> None:
    said = ["// one", "//two", "/* three */", "/*\r\n * four\n *\n * five\n */", "# six", "//", "/**/"]

    assert toml_lines(said) == ("# one", "# two", "# three", "# * four", "# *", "# * five", "# six", "#", "#")


def test_what_turns_a_line_around_or_ends_it_is_spelled_out() -> None:
    assert toml_lines(["// a\rb\x1b[2K\u202ec\u2028"]) == ("# a‹U+000D›b‹U+001B›[2K‹U+202E›c‹U+2028›",)


@given(st.text(), st.sampled_from(["//", "/*", "#"]))
def test_whatever_a_comment_holds_it_stays_a_comment(text: str, opening: str) -> None:
    text = text.replace("\n", " ") if opening != "/*" else text
    lines = toml_lines([f"{opening}{text}*/" if opening == "/*" else f"{opening}{text}"])

    assert tomllib.loads("\n".join(lines)) == {}
