import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adopt.jsonc import MARK, Doc, documents
from toolreeve.adopt.client_files import ClientFile, parse_client_file
from toolreeve.adopt.clients import CLIENTS, ConfigLocation
from toolreeve.adopt.server_entries import Remainder, restore_servers, take_servers
from toolreeve.config.jsonc import parse_jsonc, plain
from toolreeve.core.errors import ConfigError

COMMAND = ["/bin/toolreeve", "mcp"]
ENTRY = {"command": "/bin/toolreeve", "args": ["mcp"]}


def client_file(text: str, client: str = "cursor") -> ClientFile:
    return parse_client_file(CLIENTS[client], ConfigLocation(path=Path("/file")), text)


def take(text: str, client: str = "cursor") -> Remainder:
    return take_servers(client_file(text, client), COMMAND)


def value(text: str) -> Any:
    return plain(parse_jsonc(text, ""))


@given(documents())
def test_no_comment_is_lost_and_all_else_stays(doc: Doc) -> None:
    found = client_file(doc.text)

    left = take_servers(found, COMMAND)

    carried = [line for lines in left.comments.values() for line in lines]
    assert sorted(MARK.findall("\n".join([left.text, *carried]))) == doc.marks
    assert all(line.startswith("#") and "\n" not in line for line in carried)
    kept = {key: server for key, server in found.value["mcpServers"].items() if key in "xyz"}
    assert value(left.text) == {**found.value, "mcpServers": {"toolreeve": ENTRY, **kept}}
    start, end = doc.section
    assert left.text.startswith(doc.text[: start + 1])
    assert left.text.endswith(doc.text[end - 1 :])
    assert ("\r\n" in doc.text) <= ("\n" not in left.text.replace("\r\n", ""))


@given(documents())
def test_what_was_taken_can_be_put_back_with_its_comments(doc: Doc) -> None:
    left = take(doc.text)

    back, theirs = restore_servers(left.text, doc.text, left.reversal)

    assert value(back) == value(doc.text)
    assert sorted(MARK.findall(back)) == doc.marks
    assert theirs == []
    assert restore_servers(back, doc.text, left.reversal) == (back, [])


@given(documents(), st.data())
def test_later_edits_are_kept(doc: Doc, data: st.DataObject) -> None:
    left = take(doc.text)
    end = left.text.index('"/bin/toolreeve"')
    change = data.draw(st.sampled_from(['// c900c\n"n1": 1, ', '/* c900c */"n1": 1,', '"n1": 1 // c900c\n,']))
    now = left.text[:end] + '"/bin/toolreeve", ' + change + '"n2": 2' + left.text[end + len('"/bin/toolreeve"') :]
    outer = doc.section[0] + 1
    now = now[:outer] + ' "new": {"command": "n"}, // c901c\n' + now[outer:]

    back, _ = restore_servers(now, doc.text, left.reversal)

    was = value(doc.text)
    assert value(back) == {**was, "mcpServers": {"new": {"command": "n"}, **was["mcpServers"]}}
    assert sorted(MARK.findall(back)) == sorted([*doc.marks, "c900c", "c901c"])


@given(documents(comments=False))
def test_plain_json_stays_plain(doc: Doc) -> None:
    left = take(doc.text)

    assert json.loads(left.text.removeprefix("\ufeff"))
    assert json.loads(restore_servers(left.text, doc.text, left.reversal)[0].removeprefix("\ufeff"))


@given(documents(), st.sampled_from([None, 2, "\t"]))
def test_servers_return_to_a_file_that_its_client_wrote_anew(doc: Doc, indent: int | str | None) -> None:
    left = take(doc.text)

    back, _ = restore_servers(json.dumps(value(left.text), indent=indent), doc.text, left.reversal)

    assert value(back) == value(doc.text)


@pytest.mark.parametrize(
    "now", ["", "{}", "// mine\n", '{"mcpServers": {}}', '{"mcpServers": {"b": {"command": "b"}}}']
)
def test_servers_return_where_nothing_of_ours_is_left(now: str) -> None:
    before = '{"mcpServers": {"a": {"command": "a"} /* mine */, "b": {"command": "b"}}}'

    back, theirs = restore_servers(now, before, take(before).reversal)

    assert value(back) == value(before)
    assert ("/* mine */" in back, theirs) == (True, [])


def test_a_server_that_was_given_anew_stays_as_it_is_now() -> None:
    before = '{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}'
    now = '{"mcpServers": {"toolreeve": {"command": "toolreeve", "args": ["mcp"]}, "a": {"command": "mine"}}}'

    back, theirs = restore_servers(now, before, take(before).reversal)

    assert back == '{"mcpServers": {"b": {"command": "b"}, "a": {"command": "mine"}}}'
    assert theirs == ["a"]


def test_what_took_our_name_since_is_not_taken_for_ours() -> None:
    before = '{"mcpServers": {"a": {"command": "a"}}}'
    now = '{"mcpServers": {"toolreeve": {"command": "mine"}}}'

    back, _ = restore_servers(now, before, take(before).reversal)

    assert value(back)["mcpServers"] == {"a": {"command": "a"}, "toolreeve": {"command": "mine"}}


@pytest.mark.parametrize(
    "now", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": null}', '{"mcpServers": {}, "mcpServers": {}}']
)
def test_servers_are_not_put_where_there_is_no_place_for_them(now: str) -> None:
    before = '{"mcpServers": {"a": {"command": "a"}}}'

    with pytest.raises(ConfigError):
        restore_servers(now, before, take(before).reversal)


def test_a_server_of_our_name_goes_before_we_come() -> None:
    before = '{"mcpServers": {"z": {"command": "z"}, "toolreeve": {"command": "other"}}}'

    left = take(before)

    assert value(left.text) == {"mcpServers": {"toolreeve": ENTRY}}
    assert value(restore_servers(left.text, before, left.reversal)[0]) == value(before)


def test_a_server_of_our_name_that_must_stay_is_reported() -> None:
    with pytest.raises(ConfigError, match="another server named 'toolreeve'"):
        take('{"mcpServers": {"z": {"command": "z"}, "toolreeve": {"command": "./other"}}}')


def test_an_entry_of_ours_in_one_project_does_not_serve_the_others() -> None:
    ours = {"toolreeve": {"command": "toolreeve", "args": ["mcp"]}}
    before = {"mcpServers": {"a": {"command": "a"}}, "projects": {"/p": {"mcpServers": ours}}}

    left = take(json.dumps(before), "claude-code")

    assert value(left.text) == {"mcpServers": {"toolreeve": {"type": "stdio", **ENTRY}}, "projects": before["projects"]}


def test_servers_of_projects_return_to_them_even_if_the_client_forgot_the_project() -> None:
    before = json.dumps({"projects": {"/p": {"mcpServers": {"a": {"command": "./a"}}}, "/q": {"x": 1}}}, indent=2)
    left = take(before, "claude-code")
    now = json.dumps({key: each for key, each in json.loads(left.text).items() if key != "projects"})

    back, _ = restore_servers(now, before, left.reversal)

    assert value(back) == {"projects": {"/p": {"mcpServers": {"a": {"command": "./a"}}}}, "mcpServers": {}}


CODEX = """\
# Codex
[mcp_servers.a] # one
command = "/a"

# two
[mcp_servers.a.env]
K = "v" # three

[mcp_servers.kept] # four
command = "./kept"

[mcp_servers]
# five
b = { command = "/b" } # six
# seven
"""


def test_the_comments_of_tables_go_with_them_too() -> None:
    left = take(CODEX, "codex")

    section = ("mcp_servers",)
    assert left.comments == {
        (section, "a"): ("# Codex", "# one", "# two", "# three"),
        (section, "b"): ("# five", "# six", "# seven"),
    }
    assert left.text == (
        '[mcp_servers.toolreeve]\ncommand = "/bin/toolreeve"\nargs = ["mcp"]\n\n'
        '[mcp_servers.kept] # four\ncommand = "./kept"\n\n[mcp_servers]\n'
    )


def test_tables_return_to_a_file_that_was_changed_since() -> None:
    left = take(CODEX, "codex")
    now = left.text.replace("[mcp_servers.toolreeve]", "# mine\n[mcp_servers.toolreeve] # all\n") + "\n[tui]\nx = 1\n"

    back, _ = restore_servers(now, CODEX, left.reversal)

    assert tomllib.loads(back) == {**tomllib.loads(CODEX), "tui": {"x": 1}}
    lines = ["# Codex", "one", "two", "three", "four", "five", "six", "seven", "# mine", "# all"]
    assert all(line in back for line in lines)


def test_a_file_full_of_comments_and_servers_is_still_sorted_out() -> None:
    said = "/**/" * 200_000
    servers = ",".join(f'{said if key == 7 else ""}"{key}": {{"command": "/{key}"}}' for key in range(500))

    left = take(f'{{"mcpServers": {{{servers}, // {"/" * 100_000}\n}}}}')

    assert len(left.comments[("mcpServers",), "7"]) == 200_000
    with pytest.raises(ConfigError, match="more than 500 servers"):
        take(f'{{"mcpServers": {{{servers}, "more": {{"command": "m"}}}}}}')
