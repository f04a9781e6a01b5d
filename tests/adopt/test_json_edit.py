import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.adopt.json_edit import Swap, apply_swaps
from toolreeve.adopt.json_style import NewMember
from toolreeve.config.jsonc import parse_jsonc, plain

ENTRY = {"command": "/bin/toolreeve", "args": ["mcp"]}
OURS = (NewMember(key="toolreeve", value=ENTRY),)


def exchanged(text: str, *gone: str) -> str:
    return apply_swaps(text, [Swap(section=("mcpServers",), removed=gone, new=OURS)])[0]


def test_only_what_goes_is_touched_and_what_comes_is_laid_out_like_the_rest() -> None:
    text = """\
// settings of ours
{
    "theme": "dark", // not light
    "mcpServers": { // all of them

        // apart

        // about a
        "a": { "command": "a" /* inside */ }, // behind a

        // about b
        "b": { "command": "b" }, // behind b

        // about c
        "c": { "command": "c" },
        // at the end
    },
    /* the end */ "z": [1,2,],
}
"""
    changed, comments = apply_swaps(text, [Swap(section=("mcpServers",), removed=("a", "c"), new=OURS)])

    assert (
        changed
        == """\
// settings of ours
{
    "theme": "dark", // not light
    "mcpServers": { // all of them

        // apart

        "toolreeve": {
            "command": "/bin/toolreeve",
            "args": ["mcp"]
        },

        // about b
        "b": { "command": "b" }, // behind b

        // at the end
    },
    /* the end */ "z": [1,2,],
}
"""
    )
    assert comments == {
        (("mcpServers",), "a"): ("// about a", "/* inside */", "// behind a"),
        (("mcpServers",), "c"): ("// about c",),
    }


def test_on_a_line_with_others_a_comment_is_about_what_follows_it() -> None:
    text = '{"mcpServers": {/* a */ "a": 1 /* a, too */, /* b */ "b": 2, /* c */ "c": 3 /* c, too */}}'

    changed, comments = apply_swaps(text, [Swap(section=("mcpServers",), removed=("b",))])

    assert changed == '{"mcpServers": {/* a */ "a": 1 /* a, too */, /* c */ "c": 3 /* c, too */}}'
    assert comments == {(("mcpServers",), "b"): ("/* b */",)}


def test_commas_that_lead_are_understood() -> None:
    text = '{"mcpServers": {\n  "a": 1\n  // stays\n, "b": 2\n}}'

    changed, _ = apply_swaps(text, [Swap(section=("mcpServers",), removed=("a",))])

    assert changed == '{"mcpServers": {\n  // stays\n"b": 2\n}}'


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('{\n  // dark\n  "theme": 1\n}', '{\n  "mcpServers": {\n    "toolreeve"'),
        ("{\n  // nothing yet\n}", '{\n  // nothing yet\n  "mcpServers": {\n    "toolreeve"'),
        ("{ /* nothing */ }", '{ /* nothing */ "mcpServers": {"toolreeve"'),
        ('{"mcpServers": { // none\n}}', '{"mcpServers": { // none\n  "toolreeve"'),
    ],
)
def test_a_comment_does_not_come_to_stand_above_what_it_is_not_about(text: str, changed: str) -> None:
    assert exchanged(text).startswith(changed)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", '{\n  "mcpServers": {\n    "toolreeve": {\n'),
        ("\ufeff", '\ufeff{\n  "mcpServers": {\n'),
        ("// mine", '// mine\n{\n  "mcpServers": {\n'),
        ("{}", '{"mcpServers": {"toolreeve": {"command"'),
        ('{"a":1}', '{"mcpServers": {"toolreeve": {"command": "/bin/toolreeve", "args": ["mcp"]}}, "a":1}'),
        ('{\n "a": 1\n}', '{\n "mcpServers": {\n  "toolreeve": {\n   "command"'),
        ('{\r\n\t"mcpServers": {}\r\n}', '{\r\n\t"mcpServers": {\r\n\t\t"toolreeve": {\r\n\t\t\t"command"'),
        ('{"mcpServers":{"a":{}},"b":2}', '{"mcpServers":{"toolreeve": {"command"'),
    ],
)
def test_an_entry_finds_its_place_in_any_file(text: str, changed: str) -> None:
    after = exchanged(text, "a")

    assert after.startswith(changed)
    assert plain(parse_jsonc(after, ""))["mcpServers"] == {"toolreeve": ENTRY}


def test_a_section_deep_in_the_file_can_be_emptied() -> None:
    text = '{"projects": {"/p": {"x": 1, "mcpServers": {"a": {}}}}}'

    after, _ = apply_swaps(text, [Swap(section=("projects", "/p", "mcpServers"), removed=("a",))])

    assert after == '{"projects": {"/p": {"x": 1, "mcpServers": {}}}}'


_NAMES = st.text(min_size=1, max_size=5).filter(lambda name: name not in ("toolreeve", "mcpServers"))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(_NAMES, _VALUES, max_size=3),
    st.dictionaries(_NAMES, _VALUES, max_size=3),
    st.sets(_NAMES, max_size=2),
    st.sampled_from([None, 1, 4, "\t"]),
    st.booleans(),
)
def test_whatever_is_in_a_file_stays_in_it(
    others: dict[str, Any], servers: dict[str, Any], gone: set[str], indent: int | str | None, crlf: bool
) -> None:
    text = json.dumps({**others, "mcpServers": servers}, indent=indent)
    text = text.replace("\n", "\r\n") if crlf else text
    taken = [*gone, *list(servers)[:1]]

    after = exchanged(text, *taken)

    kept = {name: value for name, value in servers.items() if name not in taken}
    assert json.loads(after) == {**others, "mcpServers": {"toolreeve": ENTRY, **kept}}
    assert "\n" not in after.replace("\r\n", "") if crlf else "\r" not in after
    assert after.startswith(text[: text.index('"mcpServers"')])
