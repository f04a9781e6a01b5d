"""Containers have the limits of a local sandbox; a missing daemon is reported plainly."""

import csv
import itertools
import os
from pathlib import Path

import pytest

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.sandbox.docker import Docker
from toolreeve.sandbox.layout import Layout

CLIENT = """#!/bin/bash
[ "$1" = run ] || exit 0
printf '%s\\n' "$@" > "$(dirname "$0")/asked"
while [ "$1" != --entrypoint ]; do shift; done
program=$2; shift 3
exec "$program" "$@"
"""


def words(command: list[str], option: str) -> list[str]:
    return [value for name, value in itertools.pairwise(command) if name == option]


def docker(workspace: Path, client: str = "docker") -> Docker:
    return Docker(Layout(workspace=str(workspace)), "image:1", {"PATH": os.environ["PATH"]}, client)


def test_a_container_has_the_same_limits(tmp_path: Path) -> None:
    limits = ProcessLimits(memory_mb=300, processes=7, open_files=40, file_size_mb=3, cpu_seconds=5)
    request = ProcessRequest(argv=("bash", "-c", "true"), directory=str(tmp_path), limits=limits)

    command = docker(tmp_path).command(request, "name", {}, "")

    assert words(command, "--memory") == words(command, "--memory-swap") == ["300m"]
    assert words(command, "--pids-limit") == ["7"]
    assert words(command, "--ulimit") == ["nofile=40:40", f"fsize={3 << 20}:{3 << 20}", "cpu=5:6", "core=0:0"]


def test_a_container_has_no_network_no_capabilities_and_a_root_that_is_only_read(tmp_path: Path) -> None:
    request = ProcessRequest(argv=("bash", "-c", "true"), directory=str(tmp_path), environment={"A": "b c"})

    command = docker(tmp_path).command(request, "name", {}, "")

    assert words(command, "--network") == ["none"]
    assert words(command, "--cap-drop") == ["ALL"]
    assert words(command, "--security-opt") == ["no-new-privileges"]
    assert words(command, "--user") == [f"{os.geteuid()}:{os.getegid()}"]
    assert "--read-only" in command
    assert "--privileged" not in command
    assert "A=b c" in words(command, "--env")
    assert command[-4:] == ["bash", "image:1", "-c", "true"]


def test_a_container_sees_the_workspace_with_what_is_protected_and_hidden(tmp_path: Path) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / ".env").write_text("secret")
    layout = Layout(workspace=str(tmp_path), hidden=(str(tmp_path / ".env"),))
    request = ProcessRequest(argv=("true",), directory=str(tmp_path))

    volumes = words(Docker(layout, "image:1", {}).command(request, "name", {}, ""), "--mount")

    assert volumes == [
        f"type=bind,source={tmp_path},target={tmp_path}",
        f"type=bind,source={tmp_path}/.git/hooks,target={tmp_path}/.git/hooks,readonly=true",
        f"type=bind,source=/dev/null,target={tmp_path}/.env,readonly=true",
    ]


def test_a_path_may_hold_whatever_separates_paths(tmp_path: Path) -> None:
    odd = tmp_path / 'a:b, "c"'
    (odd / ".secret").mkdir(parents=True)
    layout = Layout(workspace=str(odd), hidden=(str(odd / ".secret"),))
    request = ProcessRequest(argv=("true",), directory=str(odd))

    mounts = words(Docker(layout, "image:1", {}).command(request, "name", {}, ""), "--mount")

    assert [next(csv.reader([mount])) for mount in mounts] == [
        ["type=bind", f"source={odd}", f"target={odd}"],
        ["type=tmpfs", f"target={odd}/.secret", "readonly=true", "tmpfs-size=4k", "tmpfs-mode=0100"],
    ]


async def test_a_daemon_that_does_not_respond_is_reported(tmp_path: Path) -> None:
    nowhere = {"PATH": os.environ["PATH"], "DOCKER_HOST": f"unix://{tmp_path}/no.sock"}
    absent = Docker(Layout(workspace=str(tmp_path)), "image:1", nowhere)

    with pytest.raises(ToolError) as raised:
        await absent.run(ProcessRequest(argv=("true",), directory=str(tmp_path)))

    assert raised.value.code in (ErrorCode.PERMISSION, ErrorCode.TOOL_EXEC)
    assert "docker" in raised.value.message


async def test_a_guarded_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as raised:
        await docker(tmp_path).run(ProcessRequest(argv=("true",), directory=str(tmp_path), network="guarded"))

    assert raised.value.code is ErrorCode.PERMISSION


async def test_the_output_of_the_container_is_returned(tmp_path: Path) -> None:
    """The client is a script that runs the program itself: what reaches it is what a daemon would be asked for."""
    client = tmp_path / "client"
    client.write_text(CLIENT)
    client.chmod(0o755)
    request = ProcessRequest(argv=("bash", "-c", "cat; exit 3"), directory=str(tmp_path), stdin=b"said")

    ended = await docker(tmp_path, str(client)).run(request)

    assert (ended.exit_code, ended.stdout, ended.sandbox) == (3, b"said", "docker")
    assert (tmp_path / "asked").read_text().startswith("run\n--rm\n")
