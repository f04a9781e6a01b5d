import pytest

from tests.cli.conftest import Shell

GOOD = """\
rules:
  - id: no-secrets
    tool: read_file
    when:
      path: {glob: "**/*.secret"}
    decision: deny
    matches:
      - {tool: read_file, args: {path: a.secret}}
    not_matches:
      - {tool: read_file, args: {path: a.txt}}
"""


def test_a_good_file_passes_with_its_examples(shell: Shell) -> None:
    (shell.workspace / "policy.yaml").write_text(GOOD)

    checked = shell.run("policy", "check", "--json")
    tested = shell.run("policy", "test", "--json")

    assert checked.json == {
        "ok": True,
        "files": [{"file": str(shell.workspace / "policy.yaml"), "rules": 1, "problems": []}],
    }
    assert (tested.status, tested.json["examples"]) == (0, 2)


def test_a_bad_file_names_line_key_and_fix_and_exits_with_1(shell: Shell) -> None:
    path = shell.workspace / "mine.yaml"
    path.write_text(GOOD.replace("a.secret", "a.public").replace("not_matches", "unmatches"))

    printed = shell.run("policy", "check", str(path))

    assert printed.status == 1
    assert f"{path}:" in printed.out
    assert "fix:" in printed.out


def test_a_failing_example_is_found(shell: Shell) -> None:
    (shell.workspace / "policy.yaml").write_text(GOOD.replace("path: a.secret", "path: a.public"))

    printed = shell.run("policy", "test")

    assert (printed.status, "does not match this example" in printed.out) == (1, True)


def test_a_project_may_not_allow(shell: Shell) -> None:
    rule = "rules:\n  - {tool: write_file, decision: allow}\n"
    (shell.workspace / "policy.yaml").write_text(rule)
    mine = shell.home / "policy.yaml"
    mine.write_text(rule)

    assert shell.run("policy", "check").status == 1
    assert shell.run("policy", "check", str(mine)).status == 0
    assert shell.run("policy", "check", "--project", str(mine)).status == 1


def test_explain_names_the_layer_the_rule_and_the_smallest_change(shell: Shell) -> None:
    (shell.workspace / "policy.yaml").write_text(GOOD)

    answer = shell.run("policy", "explain", "read_file", "path=x/y.secret", "--json").json
    text = shell.run("policy", "explain", "write_file", "path=a", "content=b").out

    assert (answer["effect"], answer["rule"]) == ("deny", "no-secrets")
    assert answer["place"] == f"{shell.workspace / 'policy.yaml'}:2"
    assert text.startswith("ask: ")
    assert "to change it:" in text


@pytest.mark.parametrize(("tool", "effect"), [("bash", "allow"), ("execute_command", "deny")])
def test_explain_shows_which_parts_of_a_command_are_known(shell: Shell, tool: str, effect: str) -> None:
    command = "command=git status && frobnicate a"

    answer = shell.run("policy", "explain", tool, command, "--json").json
    text = shell.run("policy", "explain", tool, command).out

    assert (answer["effect"], answer["danger"]) == (effect, "high")
    assert (answer["runs"], answer["asks_after"]) in (("try", "if it changes files"), ("work", "never"))
    assert answer["parts"] == [
        {"part": "git status", "known": True, "why": ""},
        {"part": "frobnicate a", "known": False, "why": "no specification of `frobnicate`"},
    ]
    assert "  high: not known: no specification of `frobnicate`\n    git status: known\n" in text
    assert "    frobnicate a: not known: no specification of `frobnicate`\n" in text


def test_cases_are_tried_against_the_whole_policy(shell: Shell) -> None:
    cases = shell.workspace / "cases.yaml"
    cases.write_text(
        "- {tool: read_file, args: {path: a}, expect: allow}\n"
        "- {tool: write_file, args: {path: a, content: b}, expect: ask}\n"
        "- {tool: delete_file, args: {path: a}, expect: allow}\n"
        "- {tool: delete_file, args: {}, expect: ask}\n"
    )

    printed = shell.run("policy", "test", str(cases))

    assert printed.status == 1
    assert f"{cases}:3: expected allow, got ask" in printed.out
    assert f"{cases}:4: expected ask, got E_INVALID_PARAMS" in printed.out
    assert "2 of 4 cases passed" in printed.out


def test_cases_with_unknown_keys_are_refused(shell: Shell) -> None:
    (shell.workspace / "cases.yaml").write_text("- {tool: read_file, expects: allow}\n")

    assert shell.run("policy", "test", "cases.yaml").status == 2


def test_a_rule_about_every_host_meets_every_request(shell: Shell) -> None:
    (shell.workspace / "policy.yaml").write_text(
        'rules:\n  - {effect: net, target: {host: "*"}, decision: deny, reason: offline}\n'
    )

    checked = shell.run("policy", "check")
    fetching = shell.run("policy", "explain", "http_get", "url=https://any.example/x")

    assert (checked.status, "valid" in checked.out) == (0, True)
    assert fetching.out.startswith("deny: offline")


def test_a_host_that_nothing_could_match_is_refused_with_its_line(shell: Shell) -> None:
    path = shell.workspace / "mine.yaml"
    path.write_text("rules:\n  - effect: net\n    decision: deny\n    target: {host: 'https://any.example'}\n")

    printed = shell.run("policy", "check", str(path))

    assert printed.status == 1
    assert f"{path}:4: rules[0].target.host: not a host: 'https://any.example'" in printed.out
    assert "fix: write a name or an address" in printed.out
