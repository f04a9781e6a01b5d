import json
import os

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


def test_a_command_is_explained_in_every_mode(shell: Shell) -> None:
    commands = ["git status", "pytest -q", "touch x", "docker compose up", "rm -rf /"]

    def outlook(*mode: str) -> list[tuple[str, str, str]]:
        printed = shell.run(*mode, "explain", "command", *commands)
        lines = [json.loads(line) for line in printed.out.splitlines()]
        return [(line["decision"], line["runs"], line["asks_after"].split(":")[0]) for line in lines]

    read = ("allow", "look", "never")
    asked = [("ask", "work", "never")] * 2
    denied = [("deny", "work", "never")] * 2
    trial = ("allow", "try", "if it changes files")
    assert outlook() == [read, trial, ("ask", "try", "yes"), *asked]
    accepting = ("allow", "try", "if it deletes files")
    assert outlook("--mode", "accept-edits") == [read, accepting, ("allow", "try", "never"), *asked]
    assert outlook("--mode", "plan") == [read, *[("allow", "try", "never")] * 2, *denied]
    assert outlook("--mode", "strict") == [("ask", "work", "never"), denied[0], asked[0], *denied]
    assert outlook("--mode", "bypass") == [("allow", "work", "never")] * 5


def test_the_rules_of_the_policy_count_in_an_explanation(shell: Shell) -> None:
    (shell.workspace / "policy.yaml").write_text("rules:\n  - {program: pytest, decision: ask, reason: tests ask}\n")

    line = json.loads(shell.run("explain", "command", "pytest -q").out)

    assert (line["decision"], line["runs"], line["reason"]) == ("ask", "work", "tests ask")


def test_the_decision_in_another_mode_is_shown_for_any_tool(shell: Shell) -> None:
    strict = shell.run("--mode", "strict", "policy", "explain", "bash", "command=git push --force")

    assert strict.out.startswith("deny: Strict mode: 'bash' is HIGH danger")
    assert "rewrites shared history" in strict.out.splitlines()[0]
