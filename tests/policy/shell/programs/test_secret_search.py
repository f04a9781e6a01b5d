"""Searches aimed at secrets: to read what they find is to read those."""

import pytest

from tests.policy.shell.workspace import analysed, runs_unasked
from toolreeve.core.danger import DangerLevel


def test_a_secret_inside_a_zip_is_asked_about() -> None:
    assert analysed("unzip -p a.zip .env").danger is DangerLevel.HIGH


AIMED = [
    "find . -name .env -exec cat {} +",
    "find .. -name '.env*' -exec cat {} \\;",
    "find . -name .env -execdir cat {} \\;",
    "find . -iname '*.PEM' -exec cat {} +",
    "find . -path './.ssh/*' -exec cat {} +",
    "find . -wholename '*/.aws/*' -exec cat {} +",
    "find . -regex '.*\\.pem' -exec cat {} +",
    "find . -name '*.pem' -print0 | xargs -0 cat",
    'cat "$(find . -name .env | head -n 1)"',
    "grep -r KEY --include=.env .",
    "grep -r KEY --include '*.pem' .",
    "grep -r KEY --include=.env* .",
    "rg KEY -g .env",
    "rg --glob=.env* KEY",
    "rg --hidden KEY -g '.env*'",
    "rg KEY --glob='*.{pem,key}'",
    "fd -H '^\\.env$' -x cat",
    "fd -e pem -X cat",
    "fd -g '*.pem' -X cat",
]


@pytest.mark.parametrize("command", AIMED)
def test_a_search_aimed_at_secrets_asks_when_they_are_read(command: str) -> None:
    assert analysed(command).danger >= DangerLevel.HIGH


AIMED_ELSEWHERE = [
    "find . -name .env",
    "find . -name .env -exec ls -l {} +",
    "find . -name '*.pem' -print0 | xargs -0 ls -l",
    "find . ! -name .env -exec cat {} +",
    "find . -not -name '*.pem' -print0 | xargs -0 cat",
    "find . -name .ssh -prune -o -name '*.py' -exec cat {} +",
    "find . -name '*.py' -exec cat {} +",
    "grep -r KEY --include='*.py' .",
    "grep -r KEY --exclude=.env .",
    "rg KEY -g '!.env'",
    "rg KEY -g '*.{py,md}'",
    "fd -e py -X cat",
    "fd . -X cat",
]


@pytest.mark.parametrize("command", AIMED_ELSEWHERE)
def test_a_search_that_reads_no_secret_it_is_aimed_at_runs_unasked(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason
