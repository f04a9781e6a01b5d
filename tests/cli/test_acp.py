import json
from pathlib import Path

from tests.acp.holding import PROGRAM, requests, write_script
from tests.cli.conftest import Shell
from tests.peers.programs import PYTHON


def configure(shell: Shell, text: str) -> None:
    path = shell.home / ".config/toolreeve/toolreeve.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def agent_table(place: Path) -> str:
    return f"""
[acp_agents.test]
command = "{PYTHON}"
args = ["{PROGRAM}"]
home = "{place / "home"}"
readable = ["{PROGRAM.parent}"]
"""


def test_an_agent_is_listed_and_run(shell: Shell, tmp_path: Path) -> None:
    assert "no agents yet" in shell.run("acp", "list").err
    configure(shell, agent_table(tmp_path / "agent"))
    write_script(tmp_path / "agent", {"steps": [requests("fs/read_text_file", path="missing")]})

    listed = shell.run("acp", "list", "--json").json
    done = shell.run("acp", "run", "test", "go")

    assert [each["name"] for each in listed] == ["test"]
    assert (done.status, done.out.strip()) == (0, "done")


def test_what_cannot_work_is_said(shell: Shell, tmp_path: Path) -> None:
    configure(shell, agent_table(tmp_path / "agent").replace(str(PYTHON), "/no/such/agent"))

    unknown = shell.run("acp", "run", "tset", "go")
    missing = shell.run("acp", "run", "test", "go")

    assert unknown.status == missing.status == 2
    assert "did you mean 'test'?" in unknown.err
    assert "is not installed" in missing.err
    configure(shell, agent_table(tmp_path / "agent") + "colour = 1\n")
    assert "colour" in shell.run("acp", "list").err


def test_an_agent_runs_beside_one_that_is_not_installed(shell: Shell, tmp_path: Path) -> None:
    configure(shell, agent_table(tmp_path / "agent") + '[acp_agents.gone]\ncommand = "/no/such/agent"\n')
    write_script(tmp_path / "agent", {"steps": []})

    done = shell.run("acp", "run", "test", "go", "--json")

    turn = json.loads(done.out.splitlines()[-1])
    assert (done.status, turn["stop"]) == (0, "end_turn")
    assert not [name for name in turn if name.startswith("_")]


def test_an_agent_that_cannot_work_leaves_out_no_other(shell: Shell, tmp_path: Path) -> None:
    broken = '[acp_agents.gone]\ncommand = "/no/such/agent"\n[acp_agents.odd]\ncolour = 1\n'
    configure(shell, agent_table(tmp_path / "agent") + broken)

    tools = shell.run("tools", "--json")
    listed = shell.run("acp", "list", "--json")

    assert [each["name"] for each in tools.json if each["category"] == "agent"] == ["agent_test"]
    assert [each["name"] for each in listed.json] == ["test"]
    assert listed.status == 1
    for printed in (tools, listed):
        assert "acp_agents.gone.command: the program '/no/such/agent' is not installed" in printed.err
        assert "acp_agents.odd: " in printed.err


def test_the_editor_is_not_served_without_a_model_that_can_answer(shell: Shell) -> None:
    unknown = shell.spawn("acp", "--model", "antropic:x")
    keyless = shell.spawn("acp", "--model", "anthropic:x")

    assert unknown.status == keyless.status == 2
    assert "did you mean 'anthropic'?" in unknown.err
    assert "set ANTHROPIC_API_KEY" in keyless.err
