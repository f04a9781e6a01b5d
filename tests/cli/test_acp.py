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
    assert "is not installed" in missing.err
    configure(shell, agent_table(tmp_path / "agent") + "colour = 1\n")
    assert "colour" in shell.run("acp", "list").err
