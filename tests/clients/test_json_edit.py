import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.clients.json_edit import without_servers
from toolreeve.config.jsonc import parse_jsonc, plain

ENTRY = {"command": "/bin/toolreeve", "args": ["mcp"]}


def test_only_the_section_changes_and_it_is_laid_out_like_the_rest() -> None:
    text = """\
// settings of ours
{
    "theme": "dark", // not light
    "mcpServers": {
        "a": { "command": "a" },
        "b": { "command": "b" },
    },
    /* the end */ "z": [1,2,],
}
"""
    assert (
        without_servers(text, ("mcpServers",), ["a"], ENTRY)
        == """\
// settings of ours
{
    "theme": "dark", // not light
    "mcpServers": {
        "toolreeve": {
            "command": "/bin/toolreeve",
            "args": ["mcp"]
        },
        "b": { "command": "b" }
    },
    /* the end */ "z": [1,2,],
}
"""
    )


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
    after = without_servers(text, ("mcpServers",), ["a"], ENTRY)

    assert after.startswith(changed)
    assert plain(parse_jsonc(after, ""))["mcpServers"] == {"toolreeve": ENTRY}


def test_a_section_deep_in_the_file_can_be_emptied() -> None:
    text = '{"projects": {"/p": {"x": 1, "mcpServers": {"a": {}}}}}'

    after = without_servers(text, ("projects", "/p", "mcpServers"), ["a"], None)

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

    after = without_servers(text, ("mcpServers",), taken, ENTRY)

    kept = {name: value for name, value in servers.items() if name not in taken}
    assert json.loads(after) == {**others, "mcpServers": {"toolreeve": ENTRY, **kept}}
    assert "\n" not in after.replace("\r\n", "") if crlf else "\r" not in after
    assert after.startswith(text[: text.index('"mcpServers"')])
