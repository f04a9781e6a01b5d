from pathlib import Path

from rich.console import Console

from toolreeve.policy.shell.explanation import explain, tree

PLACE = {"cwd": "/project", "home": "/home/me", "root": "/project"}


def test_a_command_is_explained_as_one_object() -> None:
    assert explain("cat a | foo", **PLACE) == {
        "value": "cat a | foo",
        "decision": "ask",
        "runs": "work",
        "asks_after": "never",
        "danger": "high",
        "known": False,
        "parts": [
            {"argv": ["cat", "a"], "known": True},
            {"argv": ["foo"], "known": False, "why": "no specification of `foo`"},
        ],
        "effects": [
            {"kind": "exec", "target": "cat a", "reach": "exact"},
            {"kind": "read", "target": "/project/a", "reach": "exact"},
            {"kind": "exec", "target": "foo", "reach": "exact"},
        ],
        "reason": "not known: no specification of `foo`",
    }


def test_the_tree_shows_each_command_and_hides_no_character() -> None:
    console = Console(record=True, width=120, file=Path("/dev/null").open("w"))  # noqa: SIM115
    console.print(tree("git log | head; echo '\x1b[31m'", **PLACE))

    shown = console.export_text()
    assert "‹U+001B›" in shown
    assert "\x1b" not in shown
