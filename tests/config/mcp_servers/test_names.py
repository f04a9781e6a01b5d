import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.config.mcp_servers.names import MAX_LENGTH, server_name


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("git", "git"),
        ("My Server (beta)", "My-Server-beta"),
        ("@scope/thing", "scope-thing"),
        ("io.github.x/y", "io.github.x-y"),
        ("_private_", "private"),
        ("a_b-c.d9", "a_b-c.d9"),
    ],
)
def test_names_are_made_fit_by_one_rule(given_name: str, name: str) -> None:
    assert server_name(given_name) == name


@pytest.mark.parametrize(
    ("given_name", "problem"),
    [
        ("g\u0456t", "lookalike"),
        ("git\u200b", "invisible"),
        ("\u202etig", "invisible"),
        ("ｇｉｔ", "lookalike"),
        ("git\n", "invisible"),
        ("a__b", "separates servers from tools"),
        ("toolreeve_builtin", "reserved"),
        ("mcp", "reserved"),
        ("-mcp-", "reserved"),
        ("", "no letter or digit"),
        ("...", "no letter or digit"),
        ("a" * (MAX_LENGTH + 1), "longer than"),
    ],
)
def test_names_that_could_be_taken_for_others_are_refused(given_name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        server_name(given_name)


@given(st.text(max_size=60))
def test_a_name_is_fit_or_refused_and_the_rule_changes_it_no_further(text: str) -> None:
    try:
        name = server_name(text)
    except ValueError:
        return
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", name)
    assert "__" not in name
    assert server_name(name) == name
