"""find, fd and xargs among names that are words of their own languages: `+`, `-delete`, `;`, `{}`."""

from pathlib import Path

import pytest
from bench.shell_truth import observe, scratch, unpredicted

from tests.policy.shell.workspace import analysed, effects, runs_unasked
from toolreeve.policy.shell.analysis import analyse

ATTACKS = [
    "find . -name *",
    "find . -name -*",
    "find . -name [+-]*",
    "find . -name ?delete",
    "find . -name *DELETE",
    "find . -newer *",
    "find . -newer $(cat list)",
    "find -D * -print",
    "find . -exec echo * \\;",
    "find . -exec cat src/* \\;",
    'find . -exec echo "$x" -exec rm {} \\;',
    "find . -exec echo $x {} \\;",
    "find /etc -maxdepth 1 -name shadow -execdir cat shadow \\;",
    "find . -execdir grep -fpatterns {} \\;",
    "find . -execdir grep -r x . \\;",
    "find . -execdir grep -r x .. \\;",
    "find . -execdir sh -c 'cat x' \\;",
    "find . -execdir git log \\;",
    "find . -name -print0 | xargs -0 cat",
    "find src/.. -maxdepth 0 -printf '%f\\0' | xargs -0 grep -r secret",
    'cat "$(find --version | head -n 1)"',
    "echo x | xargs --process-slot-var=BASH_ENV bash -c 'echo hi'",
    "echo a | xargs -0 cat",
    "echo a | xargs -I{} cat src/*",
    "fd --base-directory /etc -x cat shadow",
    "fd -x cat {.}",
    'fd -x echo "$x" -X rm',
]
HARMLESS = [
    "find . -name *.txt",
    "find . -name *.[ch] -print",
    "find . -newer a.txt -name *.py",
    "find . -name '*.txt' -execdir cat {} \\;",
    "find . -name '*.txt' -execdir grep -n a {} +",
    'find . -type f -exec grep "$HOME" {} \\;',
    "find src -printf '%f\\0' | xargs -0 cat",
    "find . -name '*.txt' -print0 | xargs -0 cat",
    "echo a.txt b.txt | xargs cat",
    "echo a.txt | xargs -I{} cat {} b.txt",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("find")
    (base / "home").mkdir()
    (base / "note.md").write_text("secret\n")
    root = scratch(base / "work")
    for name in ("+", "-delete", ";", "-exec", "touch", "src/{}", "-print0", "-execdir"):
        (root / name).write_text("a\n")
    return root


@pytest.mark.parametrize("command", ATTACKS)
def test_names_that_are_words_of_the_language_are_asked_about(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize("command", HARMLESS)
def test_what_is_known_does_only_what_was_predicted_among_them(command: str, hostile: Path) -> None:
    analysis = analyse(command, cwd=str(hostile), home=str(hostile.parent / "home"), root=str(hostile))
    assert runs_unasked(command), analysed(command).reason
    seen = observe(command, hostile, seconds=60)

    assert seen is not None
    assert unpredicted(analysis, seen) == []


def test_fd_is_given_places_by_a_pattern_too() -> None:
    assert "read:/x" in effects("fd ../x/* -0 | xargs -0 cat")
    assert runs_unasked("fd -e py -x wc -l --")
