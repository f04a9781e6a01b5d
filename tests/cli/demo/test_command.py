"""`toolreeve demo` without a browser."""

import pytest

from tests.cli.conftest import Shell
from toolreeve.cli.demo import command


def test_without_a_browser_the_story_is_told_and_what_would_be_asked_is_refused(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "BROWSER_SECONDS", 0.0)

    told = shell.run("demo", "--exit")

    assert told.status == 0
    assert "the user: Read the release notes" in told.out
    assert "http_post: E_PERMISSION" in told.out
    assert told.out.endswith("nothing was leaked\n")
    assert "/login?code=" in told.err
