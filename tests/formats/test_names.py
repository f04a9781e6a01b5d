import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ToolreeveError
from toolreeve.formats.names import MAX_NAME, Provider, tool_name, wire_name

STRICT = [provider for provider in Provider if provider is not Provider.MCP]
ODD = st.text(alphabet="_0x2fh5-/.é ab\ud800", max_size=30)


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("name", ["read_file", "mcp__filesystem__read_file", "get-xml", "to_xlsx"])
def test_a_name_that_is_accepted_as_it_is_stays_as_it_is(provider: Provider, name: str) -> None:
    assert wire_name(provider, name) == name


def test_a_slash_is_spelled_by_its_number_and_read_back() -> None:
    assert wire_name(Provider.OPENAI, "fs/read.text") == "fs_0x2f_read_0x2e_text"
    assert tool_name(Provider.OPENAI, "fs_0x2f_read_0x2e_text") == "fs/read.text"


def test_an_mcp_name_is_never_changed() -> None:
    assert wire_name(Provider.MCP, "fs/read_0x2f_") == "fs/read_0x2f_"
    assert tool_name(Provider.MCP, "fs_0x2f_read") == "fs_0x2f_read"


@pytest.mark.parametrize("provider", STRICT)
@given(name=ODD | st.text(max_size=20))
def test_every_name_is_accepted_by_the_provider_and_read_back(provider: Provider, name: str) -> None:
    spelled = wire_name(provider, name)

    assert re.fullmatch(r"[a-zA-Z0-9_-]{0,64}", spelled)
    assert tool_name(provider, spelled, [name]) == name
    if provider is Provider.GEMINI and name:
        assert re.match(r"[a-zA-Z_]", spelled)


@given(one=ODD, other=ODD)
def test_no_two_names_are_spelled_the_same(one: str, other: str) -> None:
    assert (wire_name(Provider.OPENAI, one) == wire_name(Provider.OPENAI, other)) is (one == other)


def test_a_name_that_is_too_long_is_decoded_with_the_known_names() -> None:
    names = ["server__" + "a" * 80 + end for end in "xyz"]

    spelled = [wire_name(Provider.ANTHROPIC, name) for name in names]

    assert len(set(spelled)) == 3
    assert {len(each) for each in spelled} == {MAX_NAME}
    assert [tool_name(Provider.ANTHROPIC, each, names) for each in spelled] == names
    assert tool_name(Provider.ANTHROPIC, spelled[0]) == spelled[0]


def test_a_tool_cannot_be_named_so_that_it_is_taken_for_a_longer_one() -> None:
    victim = "server__" + "a" * 80
    impostor = wire_name(Provider.OPENAI, victim)

    assert wire_name(Provider.OPENAI, impostor) != impostor
    assert tool_name(Provider.OPENAI, wire_name(Provider.OPENAI, impostor), [victim, impostor]) == impostor


def test_a_spelling_that_no_name_has_is_not_read_as_another_name() -> None:
    assert tool_name(Provider.OPENAI, "b_0x61_sh") == "b_0x61_sh"
    assert tool_name(Provider.OPENAI, "x_0xffffff_") == "x_0xffffff_"


def test_an_unknown_provider_is_misuse() -> None:
    with pytest.raises(ToolreeveError, match="unknown provider 'openia'; known are openai"):
        Provider.named("openia")
