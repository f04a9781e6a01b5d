"""The sentence of a question."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.approval.people import ASK, call, runs, writes
from toolreeve.approval.request import Request, pose
from toolreeve.approval.sentence import client_name, sentence, short_sentence
from toolreeve.core.effects import Effect, EffectKind

DIFF = "--- a.txt\n+++ a.txt\n@@ -1 +1,2 @@\n-old\n+new\n+more"


def posed(preview: str = "", **options: Any) -> Request:
    return replace(
        pose(call(**options), ASK, version="1", timeout=60.0, preview=preview), client="codex-mcp-client 1.2"
    )


def effects_of(*effects: Effect) -> Any:
    return lambda args, files: list(effects)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (posed(DIFF, effects=writes), "Codex wants to overwrite `a.txt` in `~` (2 lines changed)"),
        (
            posed(DIFF.replace("--- a.txt", "--- (nothing)"), effects=writes),
            "Codex wants to create `a.txt` in `~` (2 lines)",
        ),
        (posed(name="undo", effects=writes), "Codex wants to restore `a.txt` in `~`"),
        (posed(name="bash", args={"command": "npm test"}, effects=runs), "Codex wants to run `npm test` in `~`"),
        (
            posed(effects=effects_of(*(Effect(EffectKind.DELETE, f"/w/{name}") for name in "abcd"))),
            "Codex wants to delete `a`, `b`, `c` and 1 more in `~`",
        ),
        (
            posed(name="mv", effects=effects_of(Effect(EffectKind.DELETE, "/w/a"), Effect(EffectKind.WRITE, "/x/b"))),
            "Codex wants to move `a` to `/x/b` in `~`",
        ),
        (
            posed(name="http", args={"method": "POST"}, effects=effects_of(Effect(EffectKind.NET, "example.com"))),
            "Codex wants to post to `example.com`",
        ),
        (
            posed(name="mail", effects=effects_of(Effect(EffectKind.SEND, "bea@example.com"))),
            "Codex wants to send to `bea@example.com` with `mail`",
        ),
        (posed(name="lamp", args={"room": "hall"}), "Codex wants to call `lamp` with `hall`"),
    ],
)
def test_the_verb_comes_from_the_effects(request_: Request, expected: str) -> None:
    assert sentence(request_, home="/w") == expected


def test_a_trial_asks_about_its_changes() -> None:
    tried = replace(posed(name="bash", args={"command": "ruff check --fix"}, effects=runs), tried=True)

    assert sentence(tried) == "Codex ran `ruff check --fix` on trial. Keep the change?"
    assert short_sentence(tried) == "Keep the change of `ruff check --fix`"


@pytest.mark.parametrize(
    ("client", "origin", "name"),
    [
        ("claude-code 2.1.0", "mcp", "Claude Code"),
        ("Visual Studio Code 1.99", "mcp", "VS Code"),
        ("my agent", "mcp", "my agent"),
        ("", "python", "A Python program"),
        ("", "cli", "The command line"),
        ("", "elsewhere", "A client"),
    ],
)
def test_clients_are_called_what_people_call_them(client: str, origin: str, name: str) -> None:
    assert client_name(client, origin) == name


@given(st.text(max_size=300), st.text(max_size=60))
def test_no_word_of_a_call_leaves_its_marks_or_its_line(text: str, client: str) -> None:
    asked = replace(posed(name="lamp", args={"room": text}), client=client)

    said = sentence(asked)

    assert "\n" not in said
    assert said.count("`") % 2 == 0
    assert said.isprintable()
    assert len(said) < 900
