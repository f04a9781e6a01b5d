"""`toolreeve state`."""

import pytest

from tests.cli.conftest import Shell


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


def test_the_place_of_the_state_is_shown(shell: Shell) -> None:
    assert shell.run("state", "show").out.startswith("record in /")
