"""What is overwritten or deleted though it is not named: inside directories, with trees, beside a file."""

import pytest

from tests.policy.shell.workspace import analysed, effects, runs_unasked, touches, writes
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind

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
def test_a_file_that_may_be_overwritten_is_listed_though_it_is_not_named(command: str) -> None:
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


@pytest.mark.parametrize("command", ["cp -t a -t b c", f"sed -i'{'*' * 100}' s/a/b/ x"])
def test_a_target_that_is_decided_at_run_time_is_unknown(command: str) -> None:
    assert not analysed(command).known


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


KEPT = [
    ("sed -i.bak s/a/b/ books/a", "/project/books/a.bak"),
    ("sed -i.bak s/a/b/ -- books/*", "/project/books/a.bak"),
    ("sed --in-place=.bak s/a/b/ books/a", "/project/books/a.bak"),
    ("sed -i'old_*' s/a/b/ books/a", "/project/books/old_a"),
    ("flock books/lock -c 'ls'", "/project/books/lock"),
    ("flock books/lock ls", "/project/books/lock"),
    ("flock lock -c 'touch books/a'", "/project/books/a"),
]


@pytest.mark.parametrize(("command", "path"), KEPT)
def test_the_old_file_and_the_lock_are_written_too(command: str, path: str) -> None:
    assert analysed(command).known
    assert writes(command, path)


def test_a_lock_is_all_that_flock_itself_writes() -> None:
    assert effects("flock books/lock ls") == ["write:/project/books/lock", "read:/project"]


IRREPLACEABLE = [
    "rm -rf .git",
    "rm -rf .git/objects",
    "rm -rf .git/refs/heads",
    "rm -rf .git/*",
    "rm -rf .hg/store",
    "rm -rf /home/other",
    "rm -rf /home/other/*",
    "rm -rf /Users/other",
    "rm -rf /mnt/disk",
    "find / -name '*.log' -delete",
    "find / -name '*.log' -exec rm {} +",
    "find ~ -name '*.tmp' -delete",
    "find . -delete",
]


@pytest.mark.parametrize("command", IRREPLACEABLE)
def test_deleting_all_over_a_root_a_disk_a_home_or_a_history_is_critical(command: str) -> None:
    assert analysed(command).danger is DangerLevel.CRITICAL


@pytest.mark.parametrize("command", ["rm -rf build", "rm -rf .git/hooks", "find . -name '*.log' -delete", "rm x"])
def test_deleting_something_in_the_workspace_is_high(command: str) -> None:
    assert analysed(command).danger is DangerLevel.HIGH
