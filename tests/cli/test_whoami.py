import pytest

from tests.cli.conftest import Shell
from toolreeve.runtime.principal import system_user


def configure(shell: Shell, text: str) -> None:
    path = shell.home / ".config/toolreeve/toolreeve.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_role_is_the_configured_one_and_agents_are_never_administrators(shell: Shell) -> None:
    assert shell.run("whoami", "--json").json == {
        "user": "local",
        "system_user": system_user(),
        "role": "operator",
        "why": "principal.role (default)",
        "agents": "operator",
    }

    configure(shell, '[principal]\nrole = "admin"\n')
    found = shell.run("whoami", "--json").json
    assert (found["role"], found["agents"]) == ("admin", "operator")
    assert "toolreeve.toml" in found["why"]

    configure(shell, '[principal]\nrole = "viewer"\n')
    found = shell.run("whoami", "--json").json
    assert (found["role"], found["agents"]) == ("viewer", "viewer")


def test_the_operating_systems_user_decides_where_it_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(shell, f'[principal]\nrole = "viewer"\n[principal.roles]\n{system_user()} = "admin"\nmallory = "admin"\n')
    monkeypatch.setenv("USER", "mallory")
    monkeypatch.setenv("LOGNAME", "mallory")

    found = shell.run("whoami", "--json").json

    assert found["role"] == "admin"
    assert found["why"].startswith(f"principal.roles.{system_user()} (")


def test_a_role_that_does_not_exist_is_an_error(shell: Shell) -> None:
    configure(shell, f'[principal.roles]\n{system_user()} = "root"\n')

    refused = shell.run("whoami")

    assert refused.status == 2
    assert "'root' is not a role" in refused.err


@pytest.mark.parametrize("written", ['role = "admin"', 'roles = {root = "admin"}'])
def test_a_workspace_cannot_change_the_role(shell: Shell, written: str) -> None:
    (shell.workspace / "toolreeve.toml").write_text(f"[principal]\n{written}\n")

    refused = shell.run("whoami")

    assert refused.status == 2
    assert "a project's file may not set this" in refused.err


def test_an_argument_cannot_raise_the_role(shell: Shell) -> None:
    configure(shell, '[principal]\nrole = "viewer"\n')

    called = shell.run("call", "execute_command", "command=mkdir x", "role=admin")

    assert called.status == 3
    assert not (shell.workspace / "x").exists()


def test_calls_are_recorded_with_the_role(shell: Shell) -> None:
    configure(shell, '[principal]\nrole = "admin"\n')

    shell.run("call", "calculate", "expression=1+1")

    assert shell.run("audit", "list", "--json").json[0]["role"] == "admin"
