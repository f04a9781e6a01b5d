"""Two parsers, one truth: where shfmt sees other commands than we do, nothing may be known."""

import json
import random
import subprocess
from typing import Any

from tests.policy.shell.test_properties import FRAGMENTS
from tests.policy.shell.workspace import analysed
from toolreeve.policy.shell.parse.grammar import parse
from toolreeve.policy.shell.parse.syntax import Redirect, Simple
from toolreeve.policy.shell.parse.syntax import Test as Bracket
from toolreeve.policy.shell.programs.validation import examples


def ours(node: object) -> list[int]:
    """How many words each simple command has; `[ … ]` is one of a single word."""
    if isinstance(node, Bracket) and not node.double:
        return [1, *(count for part in node for count in ours(part))]
    if isinstance(node, Simple):
        timed = len(node.words) > 1 and node.words[0] == "time"
        return [len(node.words) - timed, *(count for part in node for count in ours(part))]
    return [count for part in node for count in ours(part)] if isinstance(node, tuple) else []


def theirs(node: Any) -> list[int]:
    if isinstance(node, list):
        return [count for part in node for count in theirs(part)]
    if not isinstance(node, dict):
        return []
    inner = [count for part in node.values() for count in theirs(part)]
    if node.get("Type") != "CallExpr" or not node.get("Args"):
        return inner
    first = node["Args"][0]["Parts"]
    bracket = len(first) == 1 and first[0].get("Value") == "["
    return [1 if bracket else len(node["Args"]), *inner]


def disagree(command: str) -> bool:
    told = subprocess.run(
        ["shfmt", "-ln", "bash", "--to-json"], input=command.encode(), capture_output=True, check=False
    )
    if told.returncode != 0:
        return True
    return sorted(theirs(json.loads(told.stdout))) != sorted(filter(None, ours(parse(command))))


def test_the_examples_of_the_specifications_are_read_alike() -> None:
    commands = [command for _, command, _ in examples() if analysed(command).known][::3]

    assert [command for command in commands if disagree(command)] == []


def test_what_is_known_of_random_commands_is_read_alike() -> None:
    chance = random.Random(20)
    commands = {
        "".join(chance.choice(FRAGMENTS) + chance.choice(["", " ", " "]) for _ in range(chance.randint(2, 7)))
        for _ in range(2500)
    }
    known = [command for command in sorted(commands) if "time" not in command and analysed(command).known]

    assert len(known) > 10
    assert [command for command in known if disagree(command)] == []


def test_a_redirection_is_not_a_word() -> None:
    node = parse("ls >f -l").steps[0].node

    assert node == Simple(("ls", "-l"), (), (Redirect(">", "", "f"),), "ls")
