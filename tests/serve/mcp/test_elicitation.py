"""Approval forms, and which responses grant."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.approval.clients import Client
from tests.approval.people import ASK, call, question
from toolreeve.approval.request import Choice, Request, Scope, pose
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.peer import NoAnswer
from toolreeve.serve.mcp.elicitation import LONGEST, elicitation, read_answer


@pytest.mark.parametrize(
    ("capabilities", "shows"),
    [
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({}, False),
        ({"elicitation": None}, False),
        ({"elicitation": True}, False),
    ],
)
def test_a_client_shows_forms_unless_it_declares_only_urls(capabilities: dict[str, Any], *, shows: bool) -> None:
    assert Client(capabilities=capabilities).can_ask is shows


def test_the_form_shows_everything_and_offers_no_first() -> None:
    params = elicitation(question(path="a.txt", content="line one\nline two"), lists=True)

    assert "Tool 'write_file' (danger=medium)" in params["message"]
    assert "line one" in params["message"]
    assert "line two" in params["message"]
    assert "Asked because: Default mode: medium tools are asked for" in params["message"]
    assert params["requestedSchema"]["properties"]["decision"]["enum"] == [
        "deny",
        "allow once",
        "allow for this session",
        "always allow",
    ]


def test_always_is_not_offered_where_nothing_can_be_remembered() -> None:
    request = pose(call(), ASK, version="1", timeout=60.0)

    assert "always allow" not in elicitation(request, lists=True)["requestedSchema"]["properties"]["decision"]["enum"]
    with pytest.raises(NoAnswer):
        read_answer(request, {"action": "accept", "content": {"decision": "always allow"}})


def test_what_hides_in_an_argument_is_spelled_out_in_the_form() -> None:
    hidden = "rm \u202etxt.exe\u202c \u200b\x1b[2J\r\nAsked because: you wanted it"

    message = elicitation(question(path="a", content=hidden), lists=True)["message"]

    assert not any(character in message for character in "\u202e\u202c\u200b\x1b\r")
    assert "‹U+202E›" in message
    assert "‹U+200B›" in message
    assert [line for line in message.splitlines() if line.startswith("  Asked because:")] == [
        "  Asked because: Default mode: medium tools are asked for"
    ]


def test_a_call_that_is_too_long_for_a_form_says_so_first() -> None:
    message = elicitation(question(path="a", content="y" * (LONGEST + 1)), lists=True)["message"]

    assert message.startswith("(Cut: the whole text has")
    assert "? shows" not in message
    assert len(message) <= LONGEST + 200


@pytest.mark.parametrize(
    "result",
    [
        None,
        True,
        "accept",
        [],
        {},
        {"action": "accept"},
        {"action": "accept", "content": None},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"decision": True}},
        {"action": "accept", "content": {"decision": 1}},
        {"action": "accept", "content": {"decision": "yes"}},
        {"action": "accept", "content": {"decision": "Allow once"}},
        {"action": "accept", "content": {"decision": ["allow once"]}},
        {"action": "accept", "content": [("decision", "allow once")]},
        {"action": "ACCEPT", "content": {"decision": "allow once"}},
        {"action": True, "content": {"decision": "allow once"}},
        {"action": "cancel", "content": {"decision": "allow once"}},
        {"content": {"decision": "allow once"}},
        {"approved_by": "me"},
    ],
)
def test_what_is_not_an_offered_choice_is_no_answer(result: Any) -> None:
    with pytest.raises(NoAnswer):
        read_answer(question(), result)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["accept", "allow once"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["action", "content", "decision", "note", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(_json)
def test_only_an_accepted_choice_ever_grants(result: Any) -> None:
    try:
        answer = read_answer(question(), result)
    except NoAnswer:
        return
    if answer.granted:
        assert result["action"] == "accept"
        assert result["content"]["decision"] in ("allow once", "allow for this session", "always allow")


def test_a_decline_is_a_no_whatever_came_with_it() -> None:
    assert not read_answer(question(), {"action": "decline", "content": {"decision": "allow once"}}).granted
    refused = read_answer(question(), {"action": "accept", "content": {"decision": "deny", "note": "not there"}})
    assert (refused.granted, refused.note) == (False, "not there")


def test_wider_choices_are_offered_as_sentences_and_only_these_are_answers() -> None:
    choices = (
        Choice("exactly this call", {}),
        Choice("`pytest …` with any words, not confined", {"program": "pytest"}),
    )
    request = replace(question(path="a.txt", content="x"), choices=choices)

    offered = elicitation(request, lists=True)["requestedSchema"]["properties"]["decision"]["enum"]
    wide = "for this session: `pytest …` with any words, not confined"
    answer = read_answer(request, {"action": "accept", "content": {"decision": wide}})

    assert offered[-2:] == [wide, "always: `pytest …` with any words, not confined"]
    assert (answer.granted, answer.scope, answer.choice) == (True, Scope.SESSION, 1)
    with pytest.raises(NoAnswer):
        read_answer(request, {"action": "accept", "content": {"decision": "for this session: everything"}})


RECIPIENT = {"parameter": "to", "value": "eve@x.example", "why": "nobody vouches for this destination", "field": "body"}
ORIGIN = {**RECIPIENT, "source": "read_mail", "excerpt": "mail \u202eeve@x.example", "lookalike": "", "knowable": True}


def test_a_recipient_that_may_become_known_is_offered_with_the_place_where_it_stands() -> None:
    request = replace(question(path="a", content="b"), facts={"provenance": [ORIGIN], "requested": "read my mail"})
    params = elicitation(request, lists=True)
    word = "allow once, and keep the recipient as known"

    assert word in params["requestedSchema"]["properties"]["decision"]["enum"]
    assert "to: eve@x.example - nobody vouches for this destination" in params["message"]
    assert "what read_mail returned, body (foreign text)" in params["message"]
    assert "│ mail ‹U+202E›eve@x.example" in params["message"]
    assert "The user asked: read my mail" in params["message"]
    assert read_answer(request, {"action": "accept", "content": {"decision": word}}).know
    with pytest.raises(NoAnswer):
        read_answer(question(path="a", content="b"), {"action": "accept", "content": {"decision": word}})


def tried(*paths: str) -> Request:
    effects = tuple(Effect(EffectKind.WRITE, f"/work/{path}") for path in paths)
    return replace(question(path="a"), tried=True, workspace="/work", effects=effects)


def test_a_form_about_a_trial_lists_what_may_be_kept() -> None:
    request = tried("a.txt", "src/b.py")

    field = elicitation(request, lists=True)["requestedSchema"]["properties"]["keep"]
    text = elicitation(request, lists=False)["requestedSchema"]["properties"]["keep"]

    assert field["items"]["enum"] == ["a.txt", "src/b.py"]
    assert text["type"] == "string"
    for form in (tried("a.txt"), question(path="a")):
        assert "keep" not in elicitation(form, lists=True)["requestedSchema"]["properties"]


@pytest.mark.parametrize(
    ("keep", "only"),
    [
        (["src/b.py"], ("src/b.py",)),
        ("src/b.py, a.txt\n", ("src/b.py", "a.txt")),
        ([], None),
        ("", None),
        (None, None),
    ],
)
def test_a_person_keeps_all_or_some_of_what_a_trial_changed(keep: Any, only: Any) -> None:
    content = {"decision": "allow once", "keep": keep}

    assert read_answer(tried("a.txt", "src/b.py"), {"action": "accept", "content": content}).only == only


@pytest.mark.parametrize("keep", [[1], {"a.txt": True}, True, ["a.txt", None]])
def test_a_choice_that_cannot_be_read_is_no_answer(keep: Any) -> None:
    with pytest.raises(NoAnswer):
        read_answer(tried("a.txt", "b"), {"action": "accept", "content": {"decision": "allow once", "keep": keep}})


def test_a_choice_of_files_is_no_answer_to_another_question() -> None:
    with pytest.raises(NoAnswer):
        read_answer(question(path="a"), {"action": "accept", "content": {"decision": "allow once", "keep": ["a"]}})
