import json
import os

import pytest

from tests.cli.conftest import Shell


def test_each_value_gets_a_line_of_json_in_order(shell: Shell) -> None:
    (shell.workspace / "a.txt").write_text("")
    values = ["a.txt", "../x", "/proc/self/root/etc/passwd", "new/../a.txt", ".env"]

    lines = [json.loads(line) for line in shell.run("explain", "path", *values).out.splitlines()]

    assert [line["value"] for line in lines] == values
    assert [line["decision"] for line in lines] == ["allow", "deny", "deny", "deny", "deny"]
    assert lines[0]["resolved"] == os.path.realpath("a.txt")
    assert all(line["reason"] for line in lines)


def test_values_are_read_from_standard_input_whatever_bytes_they_are(shell: Shell) -> None:
    printed = shell.spawn("explain", "path", "-", stdin=b"a.txt\n\xff\xfe\n\n/etc/passwd")

    lines = [json.loads(line) for line in printed.out.splitlines()]

    assert printed.status == 0
    assert [line["decision"] for line in lines][-1] == "deny"
    assert len(lines) == 4


def test_urls_are_judged_with_the_names_of_a_hosts_file(shell: Shell) -> None:
    (shell.workspace / "hosts").write_text("93.184.216.34 public.example\n10.0.0.5 private.example\n")
    values = ["https://public.example/x", "http://private.example/", "http://0x7f.1/", "http://unknown.example/", "?"]

    printed = shell.run("explain", "url", *values, "--resolver", "hosts")
    lines = [json.loads(line) for line in printed.out.splitlines()]

    assert [line["value"] for line in lines] == values
    assert [line["decision"] for line in lines] == ["allow", "deny", "deny", "deny", "deny"]
    assert (lines[0]["addresses"], lines[0]["rule"]) == (["93.184.216.34"], "*")
    assert all(line["reason"] for line in lines)


def test_urls_are_judged_by_the_configured_lists(shell: Shell) -> None:
    (shell.workspace / "hosts").write_text("93.184.216.34 public.example\n")
    (shell.workspace / "toolreeve.toml").write_text('[network]\ndeny = ["public.example"]\n')

    printed = shell.run("explain", "url", "http://public.example/", "--resolver", "hosts")

    assert json.loads(printed.out)["decision"] == "deny"
    assert "network.deny" in json.loads(printed.out)["reason"]


def test_urls_are_read_from_standard_input_whatever_bytes_they_are(shell: Shell) -> None:
    printed = shell.spawn("explain", "url", "-", stdin=b"http://127.1/\n\xff\xfe\n\nhttp://10.0.0.1:80\n")

    lines = [json.loads(line) for line in printed.out.splitlines()]

    assert printed.status == 0
    assert [line["decision"] for line in lines] == ["deny"] * 4


def test_an_invalid_hosts_file_is_reported(shell: Shell) -> None:
    (shell.workspace / "hosts").write_text("127.0.0.1 a\nnonsense\n")

    printed = shell.run("explain", "url", "http://a.example/", "--resolver", "hosts")

    assert printed.status == 2
    assert "line 2" in printed.err


def test_commands_are_explained_from_arguments_and_from_standard_input(shell: Shell) -> None:
    printed = shell.spawn("explain", "command", "git status", "-", stdin=b"rm -rf /\nls\n")

    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert [(line["value"], line["decision"]) for line in lines] == [
        ("git status", "allow"),
        ("rm -rf /", "ask"),
        ("ls", "allow"),
    ]


def test_nothing_to_explain_is_a_usage_error(shell: Shell) -> None:
    assert shell.run("explain", "command").status == 2


@pytest.mark.parametrize("mode", ["plan", "strict", "bypass"])
def test_a_mode_that_would_have_no_say_is_refused_and_told_where_it_has(shell: Shell, mode: str) -> None:
    printed = shell.run("--mode", mode, "explain", "command", "touch x")

    assert (printed.status, printed.out) == (2, "")
    assert f"toolreeve --mode {mode} policy explain bash" in printed.err


def test_the_decision_in_another_mode_is_told_where_the_refusal_points_to(shell: Shell) -> None:
    planned = shell.run("--mode", "plan", "policy", "explain", "bash", "command=touch x")
    strict = shell.run("--mode", "strict", "policy", "explain", "bash", "command=git push --force")

    assert planned.out.startswith("deny: Plan mode: Only read-only tools allowed: writes ")
    assert strict.out.startswith("deny: Strict mode: 'bash' is HIGH danger")
    assert "rewrites shared history" in strict.out.splitlines()[0]
