"""git where a word may be a setting or a path above: the attacks, and what is nearest to them."""

import pytest

from tests.policy.shell.workspace import analysed, runs_unasked


@pytest.mark.parametrize(
    "command",
    [
        "git config core.*",
        "git config $(echo core.pager sh)",
        "git symbolic-ref $(echo HEAD refs/heads/x)",
        "git grep -e ERROR *",
        "git ls-files -z :/ | xargs -0 cat",
        "git ls-files -z ':(top)*.txt' | xargs -0 cat",
        "git ls-files -sz | xargs -0 cat",
        "git ls-files -z --with-tree=HEAD | xargs -0 cat",
        "git ls-tree -z --name-only HEAD | xargs -0 cat",
        "git diff --no-index src ..",
    ],
)
def test_git_that_sets_reaches_or_reads_elsewhere_is_asked_about(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "git config user.name",
        "git config --get core.pager",
        "git symbolic-ref HEAD",
        "git grep -e ERROR -- src",
        "git ls-files -z src | xargs -0 cat",
        "git ls-tree --name-only HEAD",
    ],
)
def test_git_that_only_looks_here_is_known(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason
