import pytest

from tests.policy.shell.workspace import analysed
from toolreeve.policy.shell.parse.size import HEAVIEST_PLAIN, weigh

DIFFERENT = " && ".join(f"grep -n word{number} src/file{number}.py" for number in range(300))


@pytest.mark.parametrize(
    "command",
    [
        DIFFERENT,
        "\n".join(f"for f in a{number} b; do cat $f; done" for number in range(200)),
        "cat " + " ".join(f"src/*/file{number}*.py" for number in range(600)),
        "echo " + "a " * 4000,
        'echo "' + "$HOME " * 1000 + '"',
        "ls\n" * 3000,
        "{" * 5000,
    ],
)
def test_a_long_command_of_many_parts_is_not_known(command: str) -> None:
    assert weigh(command) > HEAVIEST_PLAIN
    assert "too much in one command" in analysed(command).reason


@pytest.mark.parametrize(
    "command",
    [
        "grep -n '" + "some pattern|" * 740 + "' src/file.py | sort -u && ls",
        "cat " + " ".join(f"src/file{number}.py" for number in range(700)),
        "grep -n foo src/file.py | sort -u && " * 150 + "ls",
        "echo " + "a" * 10_000,
        DIFFERENT[: DIFFERENT.index(" && ", 3000)],
    ],
)
def test_one_that_is_long_by_its_text_or_short_is_known(command: str) -> None:
    assert analysed(command).known


def test_what_is_long_and_not_plain_may_weigh_less() -> None:
    words = " ".join(f"src/file{number}.py" for number in range(500))

    assert analysed(f"cat {words} 2>/dev/null").known
    assert "too much in one command" in analysed(f"cat {words} |& head").reason


@pytest.mark.parametrize("command", ["awk '{}' x", "sed '{}' x"])
def test_a_long_program_inside_a_word_is_not_known(command: str) -> None:
    assert analysed(command.format("p;" if "sed" in command else "1;")).known
    assert "more than 2,000 characters" in analysed(command.format("p;" * 1001)).reason
