"""`toolreeve state`."""

import pytest

from tests.cli.conftest import Shell
from toolreeve.cli.state import find_mixed


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "set state.url to the PostgreSQL database"),
        ("postgresql://127.0.0.1:1/x", "nothing to migrate"),
    ],
)
def test_a_migration_without_source_or_target_is_refused(shell: Shell, url: str, said: str) -> None:
    path = shell.home / ".config/toolreeve/toolreeve.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'[state]\nurl = "{url}"\n')

    done = shell.run("state", "migrate")

    assert done.status != 0
    assert said in done.err


def test_a_database_that_is_away_is_named_in_one_line(shell: Shell) -> None:
    path = shell.home / ".config/toolreeve/toolreeve.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[state]\nurl = "postgresql://127.0.0.1:1/x"\n')

    for command in (["state", "show"], ["audit", "list"], ["call", "calculate", "expression=1"], ["tokens", "list"]):
        done = shell.spawn(*command)

        assert (done.status, done.out) == (6, "")
        assert done.err.startswith("toolreeve: postgresql://127.0.0.1:1/x cannot be reached (check state.url")
        assert len(done.err.splitlines()) == 1


def test_the_place_of_the_state_is_shown(shell: Shell) -> None:
    assert shell.run("state", "show").out.startswith("record in /")


def test_gateways_that_differ_are_named_by_what_they_differ_in() -> None:
    one = {"alive": True, "version": "1", "config": "a", "policy": "p"}

    assert find_mixed([one, one]) == []
    assert find_mixed([one, {**one, "policy": "q"}]) == ["policy"]
    assert find_mixed([one, {**one, "version": "2", "config": "b"}]) == ["version", "config"]
    assert find_mixed([one, {**one, "policy": "q", "alive": False}]) == []
