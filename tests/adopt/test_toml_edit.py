import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.adopt.toml_edit import with_tables, without_blocks, without_tables
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
    after, comments = without_tables(CODEX, "mcp_servers", ["docs"], ENTRY)

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
    assert comments == {"docs": ("# ]",)}


def test_line_ends_are_kept() -> None:
    after, _ = without_tables('a = 1\r\n[mcp_servers.x]\r\ncommand = "x"\r\n', "mcp_servers", ["x"], ENTRY)

    assert after == 'a = 1\r\n[mcp_servers.toolreeve]\r\ncommand = "/bin/toolreeve"\r\nargs = ["mcp"]\r\n'


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { x = { command = "x" } }\n',
        'mcp_servers = { x = { command = "x" }, y = 1 } # not by tables\n',
    ],
)
def test_what_cannot_be_cut_is_refused_rather_than_guessed(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be changed safely"):
        without_tables(text, "mcp_servers", ["x"], ENTRY)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('mcp_servers.x.command = "x"\na = 1\n', "a = 1\n\n@"),
        ('[mcp_servers]\nx = { command = "x" }\n', "[mcp_servers]\n@"),
        ('[mcp_servers]\nx.command = "x"\nx.args = []\n[t]\n', "[mcp_servers]\n@[t]\n"),
        ('[mcp_servers]\nx.command = "x"\ny.command = "y"', '[mcp_servers]\ny.command = "y"\n\n@'),
        ('[mcp_servers."x"]\ncommand = """\n[t]\\"""#"""\n[t]\n', "@[t]\n"),
        ('[mcp_servers."\\U00000078"]\ncommand = "x"\n', "@"),
    ],
)
def test_servers_are_found_however_they_are_written(text: str, left: str) -> None:
    after, _ = without_tables(text, "mcp_servers", ["x"], ENTRY)

    assert after == left.replace("@", '[mcp_servers.toolreeve]\ncommand = "/bin/toolreeve"\nargs = ["mcp"]\n')


def test_a_comment_belongs_to_the_table_that_it_touches() -> None:
    text = """\
[a]
# below a

# apart

# above x
[mcp_servers.x]
# in x

command = "x"
# below x

# apart, too

# above b
[b]
"""
    after, comments = without_tables(text, "mcp_servers", ["x"], None)

    assert after == "[a]\n# below a\n\n# apart\n\n# apart, too\n\n# above b\n[b]\n"
    assert comments == {"x": ("# above x", "# in x", "# below x")}


def test_tables_are_added_behind_what_is_there() -> None:
    text = '# mine\n[limits]\ntimeout = 5 # s\n\n[mcp_servers.a]\ncommand = "a"'

    after = with_tables(text, "mcp_servers", {"b": {"command": "b", "env": {"K-1": 'q"\\\x7f\n'}, "x y": True}})

    assert (
        after.text == text + '\n\n[mcp_servers.b]\ncommand = "b"\nenv = { K-1 = "q\\"\\\\\\u007f\\n" }\n"x y" = true\n'
    )


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
    extended = with_tables("[limits]\ntimeout = 5\n", "mcp_servers", tables)

    assert tomllib.loads(extended.text) == {"limits": {"timeout": 5}, "mcp_servers": tables}
    cut, _ = without_tables(extended.text, "mcp_servers", list(tables), None)
    assert tomllib.loads(cut) == {"limits": {"timeout": 5}}
    assert without_blocks(extended.text, "mcp_servers", extended.blocks) == ("[limits]\ntimeout = 5\n", [])


OWN = '# mine\n[mcp_servers.a] # my own\ncommand = "a"\n'


def test_comments_come_above_the_tables_they_are_about() -> None:
    said: dict[str, list[tuple[str, ...]]] = {"a": [("# one", "# two")], "b": [("# three",), ("# three",), ("# four",)]}

    extended = with_tables(OWN, "mcp_servers", {"b": {"command": "b"}}, said)

    assert extended.text == (
        '# mine\n# one\n# two\n[mcp_servers.a] # my own\ncommand = "a"\n\n'
        '# three\n# four\n[mcp_servers.b]\ncommand = "b"\n'
    )
    assert without_blocks(extended.text, "mcp_servers", extended.blocks) == (OWN, [])
    again = with_tables(extended.text, "mcp_servers", {}, {"a": [("# one", "# two")]})
    assert (again.text, again.blocks) == (extended.text, ())


def test_a_comment_about_what_is_no_table_comes_to_the_end() -> None:
    text = 'mcp_servers = { a = { command = "a" } }'

    assert with_tables(text, "mcp_servers", {}, {"a": [("# one",)]}).text == text + "\n# one\n"


def test_a_table_that_was_changed_since_stays() -> None:
    extended = with_tables(OWN, "mcp_servers", {"b": {"command": "b"}, "c": {"command": "c"}})
    now = extended.text.replace('command = "b"', 'command = "mine"') + "\n[limits]\ntimeout = 5\n"

    after, stay = without_blocks(now, "mcp_servers", extended.blocks)

    assert after == OWN + '\n[mcp_servers.b]\ncommand = "mine"\n\n[limits]\ntimeout = 5\n'
    assert stay == ["b"]
