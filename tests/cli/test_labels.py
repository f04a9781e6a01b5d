from tests.cli.conftest import Shell
from toolreeve.core.errors import ExitStatus


def test_a_value_is_vouched_for_listed_revoked_and_recorded(shell: Shell) -> None:
    fact = shell.run("labels", "trust", "s1", "Eve@X.org", "--json").json

    assert (fact["kind"], fact["value"], fact["session"]) == ("trusted", "eve@x.org", "s1")
    (listed,) = shell.run("labels", "list", "--json").json
    assert listed == fact
    assert shell.run("labels", "revoke", fact["id"]).status == 0
    assert "nothing is vouched for" in shell.run("labels", "list").err
    assert shell.run("labels", "revoke", fact["id"]).status == ExitStatus.NOT_FOUND
    assert shell.run("audit", "export").out.count("eve@x.org") == 2


def test_a_known_recipient_belongs_to_a_tool_and_a_parameter(shell: Shell) -> None:
    fact = shell.run("labels", "know", "mail__send", "to", "bob@x.org", "--days", "1", "--json").json

    assert (fact["kind"], fact["tool"], fact["parameter"], fact["session"]) == ("known", "mail__send", "to", "")
    assert 0 < fact["expires"] - fact["at"] <= 86_400


def test_trust_needs_either_a_value_or_a_call(shell: Shell) -> None:
    assert shell.run("labels", "trust", "s1").status == 2
    assert shell.run("labels", "trust", "s1", "x", "--call", "y").status == 2
