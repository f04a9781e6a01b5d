"""Completion of tools, arguments, servers and call ids, as the shells ask for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

SERVERS = '[mcp_servers.machine]\ncommand = "toolreeve-system-info"\n[mcp_servers.maps]\ncommand = "no-such-program"\n'


def complete(shell: Shell, line: str, kind: str = "bash") -> list[str]:
    """What is offered for the last word of a command line, by the protocol that the completion scripts use."""
    words = line.split(" ")
    at = words[-1] if kind == "fish" else str(len(words) - 1)
    done = shell.spawn(env={"_TOOLREEVE_COMPLETE": f"{kind}_complete", "COMP_WORDS": line, "COMP_CWORD": at})
    assert done.err == ""
    return done.out.splitlines()


def names(offered: list[str]) -> list[str]:
    return [line.partition(",")[2] for line in offered]


def test_tools_are_completed(shell: Shell) -> None:
    assert names(complete(shell, "toolreeve call read_f")) == ["read_file"]


def test_arguments_are_completed_required_ones_first_and_values_of_enumerations(shell: Shell) -> None:
    offered = names(complete(shell, "toolreeve call write_file "))

    assert offered[:2] == ["path=", "content="]
    assert "path=" not in names(complete(shell, "toolreeve call write_file path=a "))
    assert complete(shell, "toolreeve call write_file append=", "fish") == ["plain,append=true", "plain,append=false"]


def test_bash_which_splits_words_at_the_equals_sign_completes_what_follows_it(shell: Shell) -> None:
    assert names(complete(shell, "toolreeve call write_file path = a append = t")) == ["true"]
    assert names(complete(shell, "toolreeve call write_file path = a append =")) == ["true", "false"]
    assert "path=" not in names(complete(shell, "toolreeve call write_file path = a "))


def test_files_are_completed_where_a_path_is_expected(shell: Shell) -> None:
    (shell.workspace / "src").mkdir()
    for name in ("notes.txt", "src/a.py", ".hidden"):
        (shell.workspace / name).touch()

    assert names(complete(shell, "toolreeve call read_file path =")) == ["notes.txt", "src/"]
    assert names(complete(shell, "toolreeve call read_file path = src/")) == ["src/a.py"]
    assert names(complete(shell, "toolreeve call read_file path = .h")) == [".hidden"]
    assert complete(shell, "toolreeve call write_file content=@no", "fish") == ["plain,content=@notes.txt"]


@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_no_blank_follows_a_word_that_goes_on(shell: Shell, kind: str) -> None:
    script = shell.run("completion", kind).out

    assert {"bash": "compopt -o nospace", "zsh": "_describe -V unsorted unfinished -U -S ''"}[kind] in script


def test_servers_and_their_tools_are_completed_without_starting_them(shell: Shell) -> None:
    file = shell.home / ".config/toolreeve/toolreeve.toml"
    file.parent.mkdir(parents=True)
    file.write_text(SERVERS)

    assert names(complete(shell, "toolreeve servers show ma")) == ["machine", "maps"]
    assert names(complete(shell, "toolreeve call map")) == ["maps__"]


def test_call_ids_are_completed_newest_first(shell: Shell) -> None:
    shell.run("call", "calculate", "expression=1")
    shell.run("call", "get_datetime")

    offered = names(complete(shell, "toolreeve audit show "))

    assert len(offered) == 2
    assert offered == sorted(offered, reverse=True)


def test_a_broken_configuration_offers_nothing_and_prints_nothing(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").write_text("[workspace\n")

    assert not any(complete(shell, "toolreeve call read_f"))


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_every_shells_protocol_offers_the_tools(shell: Shell, kind: str) -> None:
    assert any("read_file" in line for line in complete(shell, "toolreeve call read_f", kind))


def test_a_real_bash_completes_a_tool(shell: Shell, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = (
        'eval "$(toolreeve completion bash)"; COMP_WORDS=(toolreeve call read_f); COMP_CWORD=2; '
        '_toolreeve_completion toolreeve; echo "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    done = subprocess.run(
        [bash, "-c", script],
        env={**os.environ, "PATH": path},
        cwd=shell.workspace,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip() == "read_file"
