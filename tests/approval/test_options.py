"""Permission options of agents, read and chosen."""

from typing import Any

import pytest

from toolreeve.approval.options import OptionKind, choose_option, outcome_of, read_option

GEMINI = [
    {"optionId": "proceed_always", "name": "Allow All Edits", "kind": "allow_always"},
    {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "cancel", "name": "Reject", "kind": "reject_once"},
]
LEGACY = [{"optionId": "allow"}, {"optionId": "deny"}]
CODEX = [{"optionId": "approved-for-session"}, {"optionId": "approved"}, {"optionId": "abort"}]


def chosen(options: list[dict[str, Any]], **terms: Any) -> str | None:
    return choose_option([read_option(option) for option in options], **terms)


@pytest.mark.parametrize(
    ("options", "allow", "reject"),
    [(GEMINI, "proceed_once", "cancel"), (LEGACY, "allow", "deny"), (CODEX, "approved", "abort")],
)
def test_each_agent_is_answered_in_its_own_words(options: list[dict[str, Any]], allow: str, reject: str) -> None:
    assert chosen(options, granted=True) == allow
    assert chosen(options, granted=False) == reject


@pytest.mark.parametrize("preferred", ["approved", "allow", "proceed_once", "anything"])
def test_another_spelling_of_an_allow_finds_the_one_that_was_offered(preferred: str) -> None:
    assert chosen(GEMINI, granted=True, preferred=preferred) == "proceed_once"


def test_an_allow_for_once_never_becomes_an_allow_for_always() -> None:
    assert chosen(GEMINI[:1], granted=True) is None
    assert chosen(GEMINI, granted=True, preferred="proceed_always") == "proceed_once"
    assert chosen([{"optionId": "allow", "kind": "allow_always"}], granted=True) is None


def test_an_always_may_fall_back_to_once() -> None:
    assert chosen(GEMINI, granted=True, always=True) == "proceed_always"
    assert chosen(LEGACY, granted=True, always=True) == "allow"


def test_a_rejection_without_an_option_to_reject_cancels() -> None:
    assert chosen([{"optionId": "proceed_once", "kind": "allow_once"}], granted=False) is None
    assert chosen([{"optionId": "allow"}], granted=False, preferred="allow") is None
    assert outcome_of(None) == {"outcome": "cancelled"}
    assert outcome_of("proceed_once") == {"outcome": "selected", "optionId": "proceed_once"}


def test_an_arbitrary_option_is_never_chosen() -> None:
    assert chosen([{"optionId": "whatever"}, {"optionId": "2"}], granted=True, preferred="whatever") is None
    assert chosen([], granted=True) is None
    assert chosen([{"optionId": "allow", "kind": "something_new"}], granted=True) is None


def test_a_kind_outranks_an_id_that_says_something_else() -> None:
    misleading = {"optionId": "allow", "kind": "reject_once"}

    assert read_option(misleading).kind is OptionKind.REJECT_ONCE
    assert chosen([misleading], granted=True) is None
    assert chosen([misleading], granted=False) == "allow"


def test_an_id_that_means_two_things_is_never_answered_with() -> None:
    """The agent would choose which of the two it was."""
    twice = [{"optionId": "x", "kind": "reject_once"}, {"optionId": "x", "kind": "allow_always"}]
    other = {"optionId": "y", "kind": "allow_once"}

    assert chosen(twice, granted=False) is None
    assert chosen([*twice, other], granted=True) == "y"
    assert chosen([{"optionId": "x", "kind": "allow_once"}, twice[1]], granted=True) is None
    assert chosen([{"optionId": "", "kind": "allow_once"}], granted=True) is None


@pytest.mark.parametrize("number", ["ａllow", "allow\u200b", "аllow", "allow once", "allow;deny", "ALLOW\0"])
def test_an_id_that_resembles_one_is_not_guessed(number: str) -> None:
    assert chosen([{"optionId": number}], granted=True) is None
