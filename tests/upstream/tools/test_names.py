"""Names of upstream tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.upstream.tools.names import MAX_LENGTH, NameRefused, check_server, relay_name, tool_name


def test_a_tool_is_called_after_its_server() -> None:
    assert tool_name("git", "log") == "git__log"


def test_a_tool_of_a_server_without_prefix_keeps_its_name() -> None:
    assert tool_name("", "log") == "log"


def test_other_printable_characters_become_underscores() -> None:
    assert tool_name("git", "read file/now:1") == "git__read_file_now_1"


def test_a_long_name_is_cut_and_ends_in_a_hash_of_the_whole() -> None:
    one, other = tool_name("git", "a" * 100), tool_name("git", "a" * 101)

    assert one != other
    assert one.startswith("git__aaa")
    assert len(one) == len(other) == MAX_LENGTH


@pytest.mark.parametrize(
    "name",
    ["pаypal", "read\u200bfile", "read\u202efile", "ｒead", "read\x00", "read\n", "läs", "", "x" * 1001, "\ufeffread"],
)
def test_look_alike_and_invisible_characters_are_refused(name: str) -> None:
    with pytest.raises(NameRefused):
        tool_name("git", name)


@pytest.mark.parametrize("name", ["a__b", "a b", "gіt", "a/b", ""])
def test_a_server_name_that_could_be_mistaken_is_refused(name: str) -> None:
    with pytest.raises(NameRefused):
        check_server(name)


def test_no_tool_can_take_the_name_of_a_relay() -> None:
    assert relay_name("git", "resources/read") != tool_name("git", "resources/read")


@given(st.sampled_from(["", "git", "a-very-long-server.name"]), st.text(max_size=200))
def test_every_name_is_refused_or_short_and_plain(prefix: str, tool: str) -> None:
    try:
        name = tool_name(prefix, tool)
    except NameRefused:
        return
    assert 0 < len(name) <= MAX_LENGTH
    assert name == tool_name(prefix, tool)
    assert all(character.isascii() and (character.isalnum() or character in "_.-") for character in name)
