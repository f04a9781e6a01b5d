import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.clients.toml_edit import with_tables, without_tables
from toolreeve.core.errors import ConfigError

ENTRY = {"command": "/bin/toolreeve", "args": ["mcp"]}
CODEX = '''\
model = "o5" # the best

[mcp_servers.docs]
command = "docs"
args = [
  "[mcp_servers.fake]", # ]
]
note = """
[mcp_servers.other]
"""

  [mcp_servers."docs".env]
TOKEN = "x"

# how it looks
[tui]
theme = 'da"rk'

[mcp_servers.kept]
command = "kept"

[[profiles]]
name = "a"
'''


def test_tables_are_cut_out_and_everything_else_stays() -> None:
    after = without_tables(CODEX, "mcp_servers", ["docs"], ENTRY)

    assert (
        after
        == """\
model = "o5" # the best

[mcp_servers.toolreeve]
command = "/bin/toolreeve"
args = ["mcp"]


# how it looks
[tui]
theme = 'da"rk'

[mcp_servers.kept]
command = "kept"

[[profiles]]
name = "a"
"""
    )


def test_line_ends_are_kept() -> None:
    after = without_tables('a = 1\r\n[mcp_servers.x]\r\ncommand = "x"\r\n', "mcp_servers", ["x"], ENTRY)

    assert after == 'a = 1\r\n[mcp_servers.toolreeve]\r\ncommand = "/bin/toolreeve"\r\nargs = ["mcp"]\r\n'


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { x = { command = "x" } }\n',
        'mcp_servers.x.command = "x"\n',
        '[mcp_servers]\nx = { command = "x" }\n',
        '[mcp_servers]\nx.command = "x"\n',
    ],
)
def test_what_cannot_be_cut_is_refused_rather_than_guessed(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be changed safely"):
        without_tables(text, "mcp_servers", ["x"], ENTRY)


def test_tables_are_added_behind_what_is_there() -> None:
    text = '# mine\n[limits]\ntimeout = 5 # s\n\n[mcp_servers.a]\ncommand = "a"'

    after = with_tables(text, "mcp_servers", {"b": {"command": "b", "env": {"K-1": 'q"\\\x7f\n'}, "x y": True}})

    assert after == text + '\n\n[mcp_servers.b]\ncommand = "b"\nenv = { K-1 = "q\\"\\\\\\u007f\\n" }\n"x y" = true\n'


def test_tables_are_not_added_to_an_inline_one() -> None:
    with pytest.raises(ConfigError, match="cannot be changed safely"):
        with_tables('mcp_servers = { a = { command = "a" } }\n', "mcp_servers", {"b": {"command": "b"}})


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | _TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(_TEXT, st.dictionaries(_TEXT, _VALUES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_what_is_written_is_read_back_and_can_be_cut_again(tables: dict[str, dict[str, Any]]) -> None:
    text = with_tables("[limits]\ntimeout = 5\n", "mcp_servers", tables)

    assert tomllib.loads(text) == {"limits": {"timeout": 5}, "mcp_servers": tables}
    assert tomllib.loads(without_tables(text, "mcp_servers", list(tables), None)) == {"limits": {"timeout": 5}}
