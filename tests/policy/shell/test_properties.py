"""What must hold for any text at all, and for every way to write the same command."""

import random
import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.shell.workspace import analysed, runs_unasked
from toolreeve.policy.shell.deny_words import deny_words, may_name
from toolreeve.policy.shell.parse.grammar import parse
from toolreeve.policy.shell.parse.syntax import Opaque
from toolreeve.policy.shell.programs.validation import examples

KNOWN = [command for _, command, known in examples() if known]
FRAGMENTS = [
    "ls",
    "echo",
    "cat",
    "a",
    "-n",
    "'q r'",
    '"d $x"',
    "$x",
    "${y%.*}",
    "$(ls)",
    "`pwd`",
    "<(ls)",
    ">f",
    "2>&1",
    "<g",
    "|",
    "||",
    "&&",
    ";",
    "&",
    "\n",
    "(",
    ")",
    "{",
    "}",
    "!",
    "#c",
    "\\ ",
    "\\;",
    "\\\n",
    "*",
    "[a]",
    "{a,b}",
    "~/x",
    "x=1",
    "<<E\nt\nE\n",
    "<<<s",
    "$'\\n'",
    "$((1))",
    "[ -f x ]",
    "[[ a == b ]]",
    "if ls; then",
    "fi",
    "for i in",
    "do",
    "done",
    "case x in",
    "esac",
    "time",
    "\t",
    "é",
    "''",
]
COMMANDS = st.lists(st.sampled_from(FRAGMENTS), max_size=9).flatmap(
    lambda parts: st.lists(st.sampled_from(["", " "]), min_size=len(parts), max_size=len(parts)).map(
        lambda gaps: "".join(part + gap for part, gap in zip(parts, gaps, strict=True))
    )
)


def test_text_beyond_ascii_does_not_end_the_process() -> None:
    """The grammar's scanner looks characters up in a table that ends with ASCII; it is never shown any other."""
    dice = random.Random(5)
    pieces = [*" abc[]{}()<>|;&$#'\"\n", "<<E\n"]
    for _ in range(3000):
        far = [chr(dice.randrange(0xE000, 0x110000)) for _ in range(20)]
        analysed("".join(dice.choice([*far, *pieces]) for _ in range(40)))


@given(st.text(max_size=200))
@settings(max_examples=400, deadline=None)
def test_no_text_breaks_the_analysis(text: str) -> None:
    analysed(text)
    deny_words(text)


@given(COMMANDS)
@settings(max_examples=600, deadline=None)
def test_no_command_breaks_the_analysis_and_a_parse_error_never_runs_unasked(command: str) -> None:
    script = parse(command)

    if any(isinstance(step.node, Opaque) for step in script.steps):
        assert not runs_unasked(command)


@given(
    st.sampled_from(KNOWN),
    st.sampled_from(["{}", " {} ", "\t{}", "{} ;", "({})", "{{ {}; }}", "! {}", "{} # comment", "true && {}"]),
)
@settings(max_examples=200, deadline=None)
def test_blanks_and_grouping_do_not_change_the_verdict(command: str, frame: str) -> None:
    if not analysed(command).known or "\n" in command:
        return
    assert runs_unasked(frame.format(command)) == runs_unasked(command)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_quoting_does_not_change_the_verdict(data: st.DataObject) -> None:
    words = data.draw(
        st.sampled_from(
            [
                ["cat", "-n", "a b"],
                ["sort", "-o", "x", "y"],
                ["git", "log", "-5"],
                ["rm", "x"],
                ["grep", "-rn", "a", "."],
            ]
        )
    )
    styles = [
        shlex.quote,
        lambda word: f'"{word}"',
        lambda word: "".join(f"\\{char}" for char in word),
        lambda word: f"''{shlex.quote(word)}",
    ]
    written = " ".join(data.draw(st.sampled_from(styles))(word) for word in words)

    assert runs_unasked(written) == runs_unasked(shlex.join(words))
    assert analysed(written).danger is analysed(shlex.join(words)).danger


@given(COMMANDS, st.sampled_from(["touch x", "$(rm x)", "`rm x`", "> f", "; rm x", "| tee f", "&& frobnicate"]))
@settings(max_examples=400, deadline=None)
def test_adding_something_harmful_never_makes_a_command_run_unasked(command: str, harm: str) -> None:
    combined = f"{command} ; echo {harm}" if harm[0] in "$`>;|&" else f"{command} ; {harm}"

    if not command.rstrip().endswith(("#c", "\\", "\\ ")) and "#c" not in command.rpartition("\n")[2]:
        assert not runs_unasked(combined)


@given(st.sampled_from(["touch", "curl", "rm"]), st.lists(st.sampled_from(["''", '""', "\\"]), min_size=2, max_size=6))
def test_a_word_taken_apart_by_quotes_is_still_met_by_a_deny(word: str, marks: list[str]) -> None:
    written = "".join(
        char + (marks[index % len(marks)] if index < len(word) - 1 else "") for index, char in enumerate(word)
    )

    assert may_name(f"{written} x", word)
