"""Whose content git prints: that of the files it names, or of all that is committed."""

import pytest

from tests.policy.shell.workspace import analysed, reads, runs_unasked
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind

COMMITTED_SECRETS = [
    "git cat-file -p HEAD:.env",
    "git cat-file blob HEAD:.env",
    "git cat-file -p :.env",
    "git cat-file -p :0:.env",
    "git log -L1,1:.env",
    "git log -L :main:.env",
    "git grep KEY HEAD -- .env",
    "git grep KEY .env",
    "git grep KEY -- '*.env'",
    "git archive HEAD | tar xO .env",
    "git archive HEAD .env",
    "tar -xOf a.tar .env",
    "git show HEAD -- .env",
    "git show --stat HEAD:.env",
    "git show 'HEAD@{2024-01-01 10:00}:.env'",
    "git diff HEAD -- .env",
    "git diff -- '*.pem'",
    "git diff -- ':(icase).ENV'",
    "git blame .env",
    "git blame HEAD -- .env",
    "git log -p -- .env",
    "git diff --no-index /dev/null .env",
]


@pytest.mark.parametrize("command", COMMITTED_SECRETS)
def test_a_committed_secret_is_asked_about_like_one_on_disk(command: str) -> None:
    assert analysed(command).danger >= DangerLevel.HIGH


CHOSEN_LATE = [
    'git show "HEAD:$x"',
    'git show --stat "HEAD:$x"',
    'git show "HEAD$(cat notes.txt)"',
    'git log -L "$x"',
    'git cat-file -p "HEAD:$(cat notes.txt)"',
    'git archive HEAD | tar xO -- "$x"',
    'gh pr list -R "$(cat notes.txt)"',
]


@pytest.mark.parametrize("command", CHOSEN_LATE)
def test_what_is_printed_must_not_be_chosen_only_when_it_runs(command: str) -> None:
    assert not analysed(command).known


PRINTS_ALL = [
    "git diff",
    "git diff main",
    "git diff main..work",
    "git diff --stat -p",
    "git diff HEAD -- ':!src'",
    "git show",
    "git show HEAD",
    "git show --stat abc1234",
    "git log -p",
    "git log -u",
    "git log --patch",
    "git log -U5",
    "git log --cc",
    "git log -S word -p",
    "git reflog -p",
    "git stash show -p",
    "git stash list -p",
    "git format-patch --stdout HEAD~2",
    "git cat-file -p abc1234",
    "git cat-file blob abc1234",
    "git archive HEAD",
    "git grep word",
    "git grep word HEAD",
    "git whatchanged -p",
    "git range-diff a b c",
    "git status -v",
    "git rerere diff",
]


@pytest.mark.parametrize("command", PRINTS_ALL)
def test_a_git_command_that_prints_content_reads_every_file_of_the_repository(command: str) -> None:
    assert reads(command)
    assert runs_unasked(command), analysed(command).reason


def test_from_a_subfolder_git_prints_files_of_the_whole_workspace() -> None:
    found = analysed("git diff", cwd="/project/src").effects

    assert any(effect.touches("/project/books/plan.hush") for effect in found if effect.kind is EffectKind.READ)


PRINTS_NAMES = [
    "git log",
    "git log --oneline -5",
    "git log --stat -- books",
    "git status",
    "git status --short",
    "git diff --stat",
    "git diff --name-only",
    "git diff --name-status HEAD~1",
    "git diff --shortstat",
    "git diff --numstat",
    "git diff --quiet",
    "git stash list",
    "git cat-file -t HEAD",
    "git archive --list",
]


@pytest.mark.parametrize("command", PRINTS_NAMES)
def test_a_git_command_that_prints_names_reads_no_content(command: str) -> None:
    assert not reads(command)
    assert runs_unasked(command), analysed(command).reason


PRINTS_OTHERS = [
    "git diff -- src",
    "git diff HEAD ./src",
    "git show HEAD:src/a.py",
    "git log -p -- src/a.py",
    "git log -L1,5:src/a.py",
    "git grep word -- src",
    "git blame src/a.py",
]


@pytest.mark.parametrize("command", PRINTS_OTHERS)
def test_named_paths_narrow_down_what_git_prints(command: str) -> None:
    assert not reads(command)
    assert reads(command, "/project/src/a.py")
    assert runs_unasked(command), analysed(command).reason


def test_what_a_pathspec_leaves_out_is_no_secret_that_is_read() -> None:
    assert runs_unasked("git diff -- . ':!.env'")
