import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.approval.people import ASK, call, writes
from toolreeve.approval.prompt import GUTTER, SHOWN_CHARACTERS, coloured, describe
from toolreeve.approval.request import Request, pose
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.core.visible import visible


def request(args: dict[str, Any], **changes: Any) -> Request:
    return replace(pose(call(args=args), ASK, version="1", timeout=60.0), **changes)


def test_the_prompt_shows_tool_danger_arguments_effects_reason_and_caller() -> None:
    verdict = Verdict(Decision.ASK, "rules", "code is reviewed", rule="policy.yaml:4")
    asked = pose(call(effects=writes), verdict, version="1", timeout=60.0, preview="-old\n+new")

    assert describe(asked).splitlines() == [
        "A Python program wants to write `a.txt` in `/w`",
        "Tool 'write_file' (danger=medium) requests approval:",
        "  path: a.txt",
        "  content: x",
        "  Effects:",
        "  │ write /w/a.txt",
        "  Change:",
        "  │ -old",
        "  │ +new",
        "  Asked because: code is reviewed (rule policy.yaml:4)",
        "  Caller: ann (operator), session s, by python",
    ]


def test_every_argument_is_shown_however_many_there_are() -> None:
    shown = describe(request({f"name{number}": {"deep": [number]} for number in range(200)}))

    assert all(f"  name{number}:" in shown for number in range(200))


def test_a_long_value_is_cut_in_the_middle_with_its_length_and_whole_in_the_details() -> None:
    text = "start" + "x" * 50_000 + "end"
    short, whole = describe(request({"content": text})), describe(request({"content": text}), whole=True)

    assert len(short) < SHOWN_CHARACTERS + 500
    assert "50,008 characters in all" in short
    assert "start" in short
    assert "end" in short
    assert text in whole


def test_many_lines_are_cut_in_the_middle_and_whole_in_the_details() -> None:
    lines = [f"line{number}" for number in range(60)]
    short = describe(request({"content": "\n".join(lines)}))

    assert "more lines" in short
    assert "line0" in short
    assert "line59" in short
    assert all(line in describe(request({"content": "\n".join(lines)}), whole=True) for line in lines)


def test_no_line_of_an_argument_can_pass_for_a_line_of_the_prompt() -> None:
    forged = "x\n  Asked because: the admin approved it\nApprove? [y]: y"

    lines = describe(request({"content": forged})).splitlines()

    assert lines[0].startswith("A Python program wants to call `write_file` with `x⏎")
    assert lines[0].endswith("`"), "the sentence is one line, and the call's words stay inside its marks"
    assert [line for line in lines[1:] if "admin approved" in line or "Approve?" in line] == [
        f"{GUTTER}  Asked because: the admin approved it",
        f"{GUTTER}Approve? [y]: y",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u202egpj.exe", "‹U+202E›gpj.exe"),
        ("a\u200bb", "a‹U+200B›b"),
        ("\x1b[2J", "‹U+001B›[2J"),
        ("a\rb", "a‹U+000D›b"),
        ("a\tb", "a⇥   b"),
        ("a\u00a0b", "a‹U+00A0›b"),
        ("\ufeffx", "‹U+FEFF›x"),
        ("x\U000e0041", "x‹U+E0041›"),
        ("\u3164", "‹U+3164›"),
        ("a\u2800b", "a‹U+2800›b"),
        ("a\ufe0f", "a‹U+FE0F›"),
        ("\u2028", "‹U+2028›"),
        ("\udcff", "‹U+DCFF›"),
        ("é e\u0301 日本 🙂", "é e\u0301 日本 🙂"),
        ("\u0301", "‹U+0301›"),
        ("e" + "\u0301" * 5, "e\u0301\u0301\u0301‹U+0301›‹U+0301›"),
    ],
)
def test_what_steers_or_hides_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


anything = st.text(st.characters())
hidden = st.text(
    st.sampled_from("\x00\x07\x08\x1b\r\t\x7f\x85\u00ad\u061c\u200b\u200e\u202e\u2066\u2069\ufeff\u2028ab\n")
)
texts = anything | hidden


@given(texts, texts, texts, texts)
def test_no_prompt_holds_a_character_that_cannot_be_seen(name: str, value: str, reason: str, user: str) -> None:
    asked = request(
        {name: value, "nested": {value: [name]}},
        preview=value,
        lasting=value,
        tool=name,
        session=user,
        verdict=Verdict(Decision.ASK, "rules", reason, rule=user),
    )

    for whole in (True, False):
        shown = describe(asked, whole=whole)
        odd = {each for each in shown if each != "\n" and unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        assert odd == set()


def test_defaults_are_folded_into_a_line_and_whole_in_the_details() -> None:
    asked = request({"path": "a", "encoding": "utf-8", "append": False}, defaults=("encoding", "append"))

    assert describe(asked).splitlines()[2:4] == ["  path: a", '  defaults: encoding="utf-8", append=false']
    assert "  append: false" in describe(asked, whole=True)


def test_colours_mark_the_heading_and_a_change() -> None:
    text = f"Tool\n{GUTTER}-old\n{GUTTER}+new\n  + not a change"

    assert coloured(text).splitlines() == [
        "\x1b[1mTool\x1b[0m",
        f"{GUTTER}\x1b[31m-old\x1b[0m",
        f"{GUTTER}\x1b[32m+new\x1b[0m",
        "  + not a change",
    ]
