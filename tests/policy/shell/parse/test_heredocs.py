"""Heredocs that are taken out before a command is read: only where bash, the parser and we agree on where they end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.shell.parse.test_plain import simple
from tests.policy.shell.test_against_shfmt import disagree
from tests.policy.shell.workspace import analysed, effects
from toolreeve.policy.shell.parse.grammar import FORMS
from toolreeve.policy.shell.parse.heredocs import remove_heredocs
from toolreeve.policy.shell.parse.lexemes import RUNNING
from toolreeve.policy.shell.parse.plain import plain
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.tree import TreeReader

WORDS = "cat~ a~ > f~ 2>&1~ | sort~ && ls~; ls~E~x~ $y~ $(z)~ `z`~ \\$y~ 'q~'~ \"r~\"~ # c~(~)~ 'a\nb'~ \\\n"
MARKS = " <<E~ << E~ << 'E'~ <<'E'~ <<\"E\"~ <<-E~<<E~ <<<E~ 2<<E~ <<F"
LINES = "\n~\n~\nE\n~\nE~\n E\n~\n\tE\n~\nF\n~\nrm x\n"
PIECES = st.sampled_from(f"{WORDS}~{MARKS}~{LINES}".split("~"))


@given(st.lists(PIECES, max_size=12).map("".join).map(lambda rest: "cat" + rest))
@settings(max_examples=1500, deadline=None)
def test_the_grammar_reads_what_is_left_the_same_way(command: str) -> None:
    left = remove_heredocs(command)
    found = plain(left) if left != command else None
    if found is None or RUNNING in left:  # of which nothing is known
        return
    try:
        assert simple(found) == simple(TreeReader(command, FORMS).script())
    except Unreadable:
        assert not disagree(command)


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("cat > x <<'E'\n$(a) 'b\nE\nls", "cat > x \x01\nls"),
        ('cat <<"E" | sort\na\nE', "cat \x01 | sort"),
        ("cat <<E > x\n$a \\$b\nE\n", "cat \x02 > x\n"),
        ("cat <<E\nE\ncat <<F\nE\nF\n", "cat \x01\ncat \x01\n"),
        ("cat > x << 'E'\na\nE\n", "cat > x \x01\n"),
        ("cat <<E\n$(touch x)\nE", "cat \x03"),
        ("cat <<E\n`touch x`\nE", "cat \x03"),
        ("cat <<E\n${x:=y}\nE", "cat \x03"),
        ("a -m \"$(cat <<'E'\nit's $(b)\n\nE\n)\" && c", "a -m 'it'\\''s $(b)' && c"),
        ('a "$(cat <<E\nb\nE\n)" <<E\n$c\nE', "a 'b' \x02"),
    ],
)
def test_its_text_is_taken_out_and_its_mark_stays(command: str, left: str) -> None:
    assert remove_heredocs(command) == left


@pytest.mark.parametrize(
    "command",
    [
        "cat <<E\na",
        "cat <<E\na\n E",
        "cat <<E\na \\\nE\nls\nE",
        "cat <<E <<F\nE\nF",
        "cat <<-E\na\nE",
        "cat 2<<E\na\nE",
        "cat 'a <<E\n'\nE",
        "cat # <<E\na\nE",
        "cat $(cat <<E)\na\nE",
        "cat <<E 'a\nE\nb'\nc\nE",
        "cat <<E'F'\na\nEF",
        "cat <<<E\na\nE",
        'a "$(cat <<E\n$b\nE\n)"',
        'a "$(cat <<E\nb\nE\nc)"',
        'a "$(tac <<E\nb\nE\n)"',
        'a "$(cat <<E; c\nb\nE\n)"',
    ],
)
def test_one_that_must_be_looked_at_more_closely_stays(command: str) -> None:
    assert remove_heredocs(command) == command


def test_a_long_file_that_is_written_by_a_heredoc_is_known() -> None:
    lines = "".join(f"def function_{number}():\n    return '$x `y` {number}'\n" for number in range(1000))

    found = analysed(f"cat > src/long.py <<'EOF'\n{lines}EOF\npython3 --version")

    assert found.known
    assert "write:/project/src/long.py" in effects(f"cat > src/long.py <<'EOF'\n{lines}EOF\n")


def test_what_follows_a_heredoc_is_read() -> None:
    assert "delete:/project/x" in effects("cat > a <<'E'\ntext\nE\nrm -r x")
    assert not analysed("bash <<'E'\nls\nE").known
    assert not analysed("cat <<'E' | sh\nls\nE").known


def test_a_command_cannot_bring_the_sign_for_a_heredoc_itself() -> None:
    assert not analysed("cat \x01").known
    assert not analysed("bash \x02").known
