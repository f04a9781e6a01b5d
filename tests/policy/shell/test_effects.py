"""Effects are true: what a command prints, overwrites, contacts or deletes without naming it is told all the same."""

import pytest

from tests.policy.shell.world import judged, runs_unasked
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind


def touches(command: str, kind: EffectKind, path: str) -> bool:
    return any(effect.kind is kind and effect.touches(path) for effect in judged(command).effects)


def reads(command: str, path: str = "/project/books/plan.hush") -> bool:
    return touches(command, EffectKind.READ, path)


def writes(command: str, path: str) -> bool:
    return touches(command, EffectKind.WRITE, path)


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
    assert judged(command).danger >= DangerLevel.HIGH


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
    assert runs_unasked(command), judged(command).reason


def test_from_a_subfolder_git_prints_files_of_the_whole_workspace() -> None:
    found = judged("git diff", cwd="/project/src").effects

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
    assert runs_unasked(command), judged(command).reason


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
    assert runs_unasked(command), judged(command).reason


def test_what_a_pathspec_leaves_out_is_no_secret_that_is_read() -> None:
    assert runs_unasked("git diff -- . ':!.env'")


INTO_A_DIRECTORY = [
    "cp sub/a.ledger books/",
    "cp sub/a.ledger books",
    "cp -t books sub/a.ledger",
    "cp --target-directory=books sub/a.ledger sub/b",
    "cp sub/*.ledger books",
    "cp sub/* books",
    "cp -r sub/. books",
    "cp -a other/books .",
    "cp --parents books/a.ledger ../project",
    "cp -b x books/a.ledger",
    "find sub -type f -exec cp {} books \\;",
    "mv sub/a.ledger books",
    "mv -t books sub/a.ledger",
    "mv sub/books .",
    "mv sub books",
    "install sub/a.ledger books",
    "install -t books sub/a.ledger",
    "ln -sf ../sub/a.ledger books",
    "ln -sf -t books ../sub/a.ledger",
    "cd books && ln -sf ../sub/a.ledger",
    "git mv sub/a.ledger books",
]
WHOLE_TREES = [
    "unzip a.zip",
    "unzip -d books a.zip",
    "tar xf a.tar -C books",
    "rsync -a sub/ books/",
    "wget -P books https://example.com/a.ledger",
    "wget -r https://example.com/",
    "cd books && wget https://example.com/a.ledger",
    "chmod -R 644 books",
    "chown -R me books",
    "chgrp --recursive me .",
    "patch -p1 -i x.patch",
    "patch -d books -p1 -i x.patch",
    "black .",
    "ruff format .",
    "ruff check --fix",
    "isort books",
    "prettier --write .",
    "gofmt -w books",
    "split -l 5 x books/a.",
    "cd books && split -l 5 x a",
    "gzip -r books",
    "git checkout .",
    "git checkout work",
    "git switch work",
    "git restore .",
    "git reset --hard",
    "git stash",
    "git stash pop",
    "git pull",
    "git merge work",
    "git rebase main",
    "git cherry-pick abc1234",
    "git apply x.patch",
    "git am x.patch",
]


@pytest.mark.parametrize("command", [*INTO_A_DIRECTORY, *WHOLE_TREES])
def test_what_may_be_overwritten_is_told_though_it_is_not_named(command: str) -> None:
    assert writes(command, "/project/books/a.ledger")
    assert not runs_unasked(command)


ELSEWHERE = [
    "cp sub/a.ledger sub/b.ledger",
    "cp sub/*.txt books",
    "cp sub/a.ledger .",
    "mv sub/a.ledger .",
    "mv sub .",
    "cp -r sub .",
    "unzip -d sub a.zip",
    "unzip -l a.zip",
    "split -l 5 x books/part",
    "wget https://example.com/a.ledger",
    "git reset HEAD x",
    "ruff check .",
    "cp books/a.ledger /dev/null",
]


@pytest.mark.parametrize("command", ELSEWHERE)
def test_what_is_written_elsewhere_does_not_count_as_overwritten(command: str) -> None:
    assert not writes(command, "/project/books/a.ledger")


DELETED = [
    "mv books sub",
    "rsync -a --delete sub/ books/",
    "rsync -a --remove-source-files books/ sub/",
    "git clean -fdx",
    "git clean -f books",
]


@pytest.mark.parametrize("command", DELETED)
def test_what_goes_with_a_tree_is_deleted(command: str) -> None:
    assert touches(command, EffectKind.DELETE, "/project/books/a.ledger")


def test_a_secret_inside_a_zip_is_asked_about() -> None:
    assert judged("unzip -p a.zip .env").danger is DangerLevel.HIGH
