"""File names that lead elsewhere: blanks, line ends and dashes in them, against the kernel's own account."""

from itertools import product
from pathlib import Path

import pytest
from bench.shell_truth import observe, scratch, unpredicted

from tests.policy.shell.workspace import analysed, effects, runs_unasked
from toolreeve.core.danger import DangerLevel
from toolreeve.policy.shell.analysis import analyse

LISTERS = [
    "find . -type f",
    "find . -type f -print0",
    "find . -type f -printf '%f\\n'",
    "ls",
    "ls --zero",
    "git ls-files -z",
    "grep -rlZ ERROR .",
    "echo a.txt dir/x.log",
]
FILTERS = ["", " | sort", " | sort -z", " | head -n 1", " | tail -n 1"]
READERS = [
    "{} | xargs cat",
    "{} | xargs -0 cat",
    "{} | xargs -0 sort",
    "{} | xargs -0 uniq",
    "{} | xargs -I% head -n 1 %",
    "{} | xargs -0 grep -r secret",
    "{} | xargs -0 grep",
    "cat $({})",
    'cat "$({})"',
    'x=$({}); cat "$x"',
    "x=$({}); cat $x",
    'for f in $({}); do cat "$f"; done',
    "bash -c 'cat \"$1\"' _ $({})",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace some of whose names are, in pieces, the path of a file beside it."""
    base = tmp_path_factory.mktemp("names")
    (base / "home").mkdir()
    root = scratch(base / "work")
    secret = base / "secret.txt"
    secret.write_text("secret ERROR\n")
    for name in (f"x {secret}", f"y\n{secret}", f"dir/z {secret}", "-o", "a -o b.txt", "dir/-r ..", f"v\n/..{secret}"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("ERROR here\n")
    return root


@pytest.mark.parametrize("reader", READERS)
def test_what_is_known_reads_only_what_was_predicted_among_hostile_names(reader: str, hostile: Path) -> None:
    for lister, chosen in product(LISTERS, FILTERS):
        command = reader.format(lister + chosen)
        analysis = analyse(command, cwd=str(hostile), home=str(hostile.parent / "home"), root=str(hostile))
        if not analysis.known or analysis.danger > DangerLevel.LOW:
            continue
        seen = observe(command, hostile, seconds=60)
        assert seen is not None, command
        assert unpredicted(analysis, seen) == [], command


@pytest.mark.parametrize(
    "command",
    [
        "find . | xargs cat",
        "find . -print0 | xargs cat",
        "find . -print | xargs -0 cat",
        "find . -print -print0 | xargs -0 cat",
        "find . -print0 | sort | xargs -0 cat",
        "find . -print0 | xargs -0 -d '\\n' cat",
        "cat $(find . -name '*.py')",
        "x=$(find . -name '*.py'); cat $x",
        'for f in $(ls); do cat "$f"; done',
        'cat "$(find . | tail -n 1)"',
        'cat "$(find . | sort | head -n 1)"',
        'cat "$(ls -ad --zero . .)"',
        "for f in */*/*; do cat $f; done",
        "for f in *; do grep -r x $f; done",
        "find . -name '*.py' | xargs -I{} cat {}",
        "cat $(readlink x)",
        'cat "$(realpath --relative-to=src/deep /project/x)"',
        "git -C src ls-files -z | xargs -0 cat",
        'cat "$(ls | grep -l --label=/etc/shadow x)"',
        'sort "$(git ls-files)"',
    ],
)
def test_a_name_that_may_be_read_as_several_is_not_known(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "find . -print0 | xargs -0 grep -n TODO",
        "find . -print0 | sort -z | head -z -n 3 | xargs -0 sort",
        "grep -rlZ x src | xargs -0 cat",
        "rg -l0 x | xargs -0 cat",
        "git ls-files -z | xargs -0 wc -l --",
        "fd -0 -e py | xargs -0 wc -l --",
        "find . | xargs ls -l",
        "find . | xargs -n 1 basename",
        "echo a b | xargs cat",
        "sort $(echo a b)",
        'cat "$(ls -t | head -n 1)"',
        'f=$(ls -t | head -n 1); cat "$f"',
        'for f in *.py; do head -n 1 "$f"; done',
        "for f in src/*.py; do head -n 1 $f; done",
        "ls $(pwd) && who | grep $(whoami) && ls log-$(date +%F)",
    ],
)
def test_names_that_are_told_apart_are_known(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason


def test_the_reason_says_how_to_tell_names_apart() -> None:
    assert "-print0 | xargs -0" in analysed("find . | xargs cat").reason
    assert "find -exec" in analysed("cat $(ls)").reason
    assert "quote it" in analysed("for f in */*/*; do cat $f; done").reason


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("find src -exec uniq {} +", "write:/project/src/**"),
        ("find src -print0 | xargs -0 uniq", "write:/project/src/**"),
        ("uniq a*", "write:/project/a*"),
        ("find src -exec grep {} +", "read:/project/src"),
        ("find src -exec jq {} +", "read:/project/src"),
        ("grep .* x", "read:/project/.*"),
        ("rg foo", "read:/project"),
        ("find x -print0 | xargs -0 rg foo", "read:/project"),
        ("find x -print0 | xargs -0 grep -r foo", "read:/project"),
    ],
)
def test_words_that_may_be_several_or_none_have_every_role_they_may_get(command: str, expected: str) -> None:
    assert expected in effects(command)


def test_a_pattern_that_leads_up_again_is_not_known() -> None:
    assert not analysed("cat ./*/../../x").known
    assert not analysed("find ./*/../.. -exec cat {} +").known
