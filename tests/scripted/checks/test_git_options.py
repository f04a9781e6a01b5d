"""Every option of the installed git: a value after one that takes no word cannot be an option."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from toolreeve.core.errors import ToolError
from toolreeve.core.evaluators.git import TAKING
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import compile_script

_OPTION = re.compile(r"^ {4}(?:(-\w)(?:, )?)?(--[\w\[\]-]+)?(.*)$")
_SEARCHES = ("log", "show", "diff")
"""Subcommands whose help leaves out most of their options."""


def _git(*words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


@cache
def commands() -> tuple[str, ...]:
    return tuple(_git("--list-cmds=builtins").split())


@cache
def options_of(command: str) -> dict[str, bool]:
    """Each option in the help, and whether it certainly takes the next word."""
    found: dict[str, bool] = {}
    for line in _git(command, "-h").splitlines():
        match = _OPTION.match(line)
        if match is None or not (match[1] or match[2]):
            continue
        takes = re.match(r" ?[<(]", match[3]) is not None
        for option in filter(None, (match[1], (match[2] or "").replace("[no-]", ""))):
            found[option] = found.get(option, True) and takes
    return found


def _forms(command: str) -> Iterator[str]:
    for option, takes in options_of(command).items():
        if not takes:
            yield f'git {command} {option} "{{{{x}}}}"'
            yield f'git -c a.b=c {command} {option} "{{{{x}}}}"'
        if not takes and not option.startswith("--"):
            yield f'git {command} {option}"{{{{x}}}}"'


def _lets_options_in(form: str) -> bool:
    try:
        compile_script(form, {}).render({"x": "--upload-pack=a"})
    except (TemplateProblem, ToolError):
        return False
    return True


def test_the_help_of_git_is_understood() -> None:
    assert len(commands()) > 100
    assert options_of("fetch")["-t"] is False
    assert options_of("fetch")["--upload-pack"] is True
    assert options_of("commit")["-m"] is True


@pytest.mark.parametrize("command", commands())
def test_a_value_behind_an_option_without_a_word_is_no_option(command: str) -> None:
    assert [form for form in _forms(command) if _lets_options_in(form)] == []


@pytest.mark.parametrize("command", sorted(set(TAKING) - {"", *_SEARCHES}))
def test_what_counts_as_certain_takes_a_word_in_the_help(command: str) -> None:
    options = options_of(command)

    assert [option for option in TAKING[command].split() if not options.get(option, False)] == []


@pytest.mark.parametrize("command", _SEARCHES)
def test_what_counts_as_certain_swallows_an_option(command: str, tmp_path: Path) -> None:
    """The canary is a file: `--output` writes one if it is read as an option."""
    _git("init", "-q", ".", cwd=tmp_path)
    _git("-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "--allow-empty", "-m", "a", cwd=tmp_path)
    behind = () if command == "diff" else ("HEAD",)

    for option in TAKING[command].split():
        _git(command, option, "--output=canary", *behind, cwd=tmp_path)

        assert not (tmp_path / "canary").exists(), option

    if command in ("log", "show"):
        _git(command, "--output=canary", *behind, cwd=tmp_path)
        assert (tmp_path / "canary").exists()


@pytest.mark.parametrize("form", ['git commit -m "{{x}}"', 'git -C d commit -am "{{x}}"', 'git log --grep "{{x}}"'])
def test_a_value_behind_an_option_that_takes_it_may_begin_with_a_dash(form: str) -> None:
    compile_script(form, {}).render({"x": "- a point of a list"})
