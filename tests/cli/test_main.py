import shlex
import subprocess
import sys

import pytest

from tests.cli.conftest import Shell
from toolreeve.cli.main import COMMANDS, toolreeve

HEAVY = (
    "asyncio",
    "docx",
    "jsonschema_rs",
    "orjson",
    "prometheus_client",
    "psutil",
    "pydantic",
    "pypdf",
    "re2",
    "rich",
    "simpleeval",
    "sqlite3",
    "subprocess",
    "tomllib",
    "yaml",
)


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from toolreeve.cli.main import main\n"
        "status = main(['--help'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], status, file=sys.stderr)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert done.stderr == "[] 0\n"
    assert "Exit codes:" in done.stdout


def test_every_command_can_be_asked_for_help(shell: Shell) -> None:
    for name in COMMANDS:
        printed = shell.run(name, "--help")
        assert (printed.status, printed.err) == (0, "")
        assert "Usage: toolreeve " + name in printed.out


def test_the_table_of_commands_says_what_each_says_itself() -> None:
    context = toolreeve.make_context("toolreeve", ["config"])

    for name, (_, summary) in COMMANDS.items():
        command = toolreeve.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert summary.endswith(".")


def test_the_version_is_the_packages(shell: Shell) -> None:
    printed = shell.run("--version")

    assert (printed.status, printed.out) == (0, "toolreeve 0.1.0\n")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["cal"], "no such command 'cal'; did you mean 'call'?"),
        (["config", "shw"], "no such command 'shw'; did you mean 'show'?"),
        (["zzz"], "no such command 'zzz'; known commands: init, doctor"),
        (["--nonsense"], "No such option"),
        (["--mode", "yolo", "tools"], "'yolo' is not one of"),
        (["undo"], "name a CALL"),
    ],
)
def test_bad_usage_exits_with_2_and_suggests(shell: Shell, args: list[str], says: str) -> None:
    printed = shell.run(*args)

    assert (printed.status, printed.out) == (2, "")
    assert says in printed.err


def test_without_a_command_the_help_is_shown_as_bad_usage(shell: Shell) -> None:
    printed = shell.run()

    assert (printed.status, printed.out) == (2, "")
    assert "Usage: toolreeve" in printed.err


def test_errors_are_json_too_when_json_is_asked_for(shell: Shell) -> None:
    printed = shell.run("--json", "trust")

    assert printed.status == 2
    assert printed.json["success"] is False
    assert printed.json["error"]["code"] == "E_INVALID_PARAMS"


def test_common_options_may_stand_before_or_after_the_command(shell: Shell) -> None:
    before = shell.run("--json", "--workspace", "/", "config", "path")
    after = shell.run("config", "path", "--json", "--workspace", "/")

    assert before == after
    assert before.json["project"]["path"] == "/toolreeve.toml"


@pytest.mark.parametrize("command", ["config schema", "tools --json", "audit export"])
def test_a_reader_that_goes_away_is_no_error(shell: Shell, command: str) -> None:
    shell.run("call", "list_directory")
    line = f"{shlex.quote(sys.executable)} -m toolreeve {command} | true; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(shell: Shell, name: str) -> None:
    printed = shell.run("completion", name)

    assert printed.status == 0
    assert "_TOOLREEVE_COMPLETE" in printed.out


def test_commands_are_completed(shell: Shell) -> None:
    env = {"_TOOLREEVE_COMPLETE": "bash_complete", "COMP_WORDS": "toolreeve co", "COMP_CWORD": "1"}

    printed = shell.spawn(env=env)

    assert (printed.status, printed.out.split()) == (0, ["plain,config", "plain,completion"])


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("door", [["mcp"], ["serve", "--mcp", "--port", "0"]])
def test_a_door_that_is_opened_in_the_root_of_all_files_is_refused(door: list[str]) -> None:
    command = [sys.executable, "-m", "toolreeve", *door]
    refused = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--workspace DIR" in refused.stderr
    assert "workspace.dir" in refused.stderr


def test_the_help_of_a_group_cuts_no_summary(shell: Shell) -> None:
    printed = shell.run("workers", "--help").out

    assert "and one for each configured pool." in " ".join(printed.split())
