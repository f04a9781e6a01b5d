from pathlib import Path

from click.testing import CliRunner
from rich.console import Console

from toolreeve.cli.explain_command import command
from toolreeve.core import json
from toolreeve.policy.shell.explaining import explain, tree

PLACE = {"cwd": "/work", "home": "/home/me", "root": "/work"}


def test_a_command_is_explained_as_one_object() -> None:
    assert explain("cat a | foo", **PLACE) == {
        "value": "cat a | foo",
        "decision": "ask",
        "danger": "high",
        "known": False,
        "parts": [
            {"argv": ["cat", "a"], "known": True},
            {"argv": ["foo"], "known": False, "why": "no specification of `foo`"},
        ],
        "effects": [
            {"kind": "exec", "target": "cat a", "reach": "exact"},
            {"kind": "read", "target": "/work/a", "reach": "exact"},
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


def test_commands_are_read_from_arguments_and_from_standard_input() -> None:
    result = CliRunner().invoke(command, ["git status", "-"], input="rm -rf /\nls\n")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["value"], line["decision"]) for line in lines] == [
        ("git status", "allow"),
        ("rm -rf /", "ask"),
        ("ls", "allow"),
    ]


def test_nothing_to_explain_is_a_usage_error() -> None:
    assert CliRunner().invoke(command, []).exit_code == 2
