import pytest

from tests.cli.conftest import Shell

VALUE = "correct-horse-battery"


def test_a_secret_is_set_listed_and_removed_and_never_shown(shell: Shell) -> None:
    kept = shell.spawn("secrets", "set", "MY_TOKEN", stdin=f"{VALUE}\n".encode())
    assert kept.status == 0
    assert "${secret:MY_TOKEN}" in kept.out

    listed = shell.spawn("secrets", "list", "--json")
    assert [each["name"] for each in listed.json["secrets"]] == ["MY_TOKEN"]
    removed = shell.spawn("secrets", "remove", "MY_TOKEN")

    assert removed.status == 0
    assert shell.spawn("secrets", "remove", "MY_TOKEN").status == 5
    for printed in (kept, listed, removed):
        assert VALUE not in printed.out + printed.err


def test_a_tool_gets_the_secret_and_its_output_does_not_show_it_even_encoded(shell: Shell) -> None:
    shell.spawn("secrets", "set", "MY_TOKEN", stdin=VALUE.encode())
    config = shell.home / ".config/toolreeve"
    (config / "tools.yaml").write_text(
        "tools:\n"
        "  show:\n"
        "    name: show\n"
        "    description: Shows.\n"
        "    danger: safe\n"
        '    script: printf %s "$KEY"; printf %s "$KEY" | base64\n'
        "    parameters: []\n"
        "    sandbox:\n"
        '      environment_variables: {KEY: "${secret:MY_TOKEN}"}\n'
    )
    (config / "toolreeve.toml").write_text(f'tool_files = ["{config}/tools.yaml"]\n')

    called = shell.spawn("call", "show", "--mode", "bypass")

    assert called.status == 0, called.err
    assert VALUE not in called.out + called.err
    assert "Y29ycmVjdC1ob3JzZ" not in called.out
    assert "[redacted]" in called.out


@pytest.mark.parametrize("name", ["a/b", "../x", "A B", "", "$(x)"])
def test_odd_names_are_refused(shell: Shell, name: str) -> None:
    refused = shell.spawn("secrets", "set", name, stdin=b"value")

    assert refused.status != 0
    assert "cannot name a secret" in refused.err
    assert not (shell.home / ".config/toolreeve/secrets.toml").exists()


def test_an_empty_value_is_refused(shell: Shell) -> None:
    assert "cannot be empty" in shell.spawn("secrets", "set", "A", stdin=b"\n").err
