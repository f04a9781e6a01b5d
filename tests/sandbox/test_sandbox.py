"""Programs, paths and networks of a request in the sandbox, and how it follows changes."""

import asyncio
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

CONNECT = "import socket; s = socket.create_connection(('127.0.0.1', 3128), 5); print(s.recv(9).decode())"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def greet(listener: socket.socket, _: frozenset[str] | None) -> None:
    """A stand-in for the proxy that greets each client."""
    listener.setblocking(False)
    while True:
        comer, _ = await asyncio.get_running_loop().sock_accept(listener)
        comer.sendall(b"hello")
        comer.close()


@pytest.fixture
async def sandbox(workspace: Path) -> AsyncIterator[Sandbox]:
    layout = Layout(workspace=str(workspace), readable=(sys.base_prefix, sys.prefix))
    sandbox = Sandbox(layout, Strictness(require="full"), greet)
    yield sandbox
    await sandbox.close()


def bash(workspace: Path, script: str, **options: object) -> ProcessRequest:
    return ProcessRequest(argv=("bash", "-c", script), directory=str(workspace), **options)  # type: ignore[arg-type]


async def test_only_the_allowed_programs_exist(sandbox: Sandbox, workspace: Path) -> None:
    script = "ls > /dev/null && echo listed; cat /etc/hosts; /usr/bin/id; /lib64/ld-linux-x86-64.so.2 /usr/bin/id"

    ended = await sandbox.run(bash(workspace, script, allowed_programs=("bash", "ls")))

    assert ended.stdout == b"listed\n"
    assert ended.stderr.count(b"No such file") + ended.stderr.count(b"not found") >= 2


async def test_a_program_cannot_bring_another_along(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "mine").write_bytes(Path("/usr/bin/id").read_bytes())
    (workspace / "mine").chmod(0o755)
    script = "./mine; cp mine /tmp/mine; /tmp/mine; /lib64/ld-linux-x86-64.so.2 ./mine"

    ended = await sandbox.run(bash(workspace, script, allowed_programs=("bash", "cp")))

    assert b"uid=" not in ended.stdout


async def test_a_program_that_is_not_allowed_is_refused_by_name(sandbox: Sandbox, workspace: Path) -> None:
    with pytest.raises(ToolError) as raised:
        await sandbox.run(bash(workspace, "true", allowed_programs=("ls",)))

    assert raised.value.code is ErrorCode.CMD_NOT_ALLOWED


async def test_named_paths_are_there_and_only_for_those_who_named_them(sandbox: Sandbox, workspace: Path) -> None:
    data, results = workspace.parent / "data", workspace.parent / "results"
    data.mkdir()
    results.mkdir()
    (data / "file").write_text("given")
    script = f"cat {data}/file; touch {data}/new; echo made > {results}/file"

    named = await sandbox.run(bash(workspace, script, readable=(str(data),), writable=(str(results),)))
    other = await sandbox.run(bash(workspace, script))

    assert (named.stdout, other.stdout) == (b"given", b"")
    assert b"Read-only file system" in named.stderr
    assert (results / "file").read_text() == "made\n"
    assert not (data / "new").exists()


async def test_a_directory_outside_is_refused(sandbox: Sandbox, workspace: Path) -> None:
    with pytest.raises(ToolError) as raised:
        await sandbox.run(bash(workspace.parent, "true"))

    assert raised.value.code is ErrorCode.PATH_FORBIDDEN


async def test_where_writing_is_off_nothing_can_be_written(workspace: Path) -> None:
    sandbox = Sandbox(Layout(workspace=str(workspace), may_write=False), Strictness())
    try:
        ended = await sandbox.run(bash(workspace, "touch file"))
    finally:
        await sandbox.close()

    assert b"Read-only file system" in ended.stderr


async def test_what_comes_to_be_protected_is_protected_at_the_next_command(sandbox: Sandbox, workspace: Path) -> None:
    await sandbox.run(bash(workspace, "mkdir -p .git/hooks; echo a > .git/config"))

    ended = await sandbox.run(bash(workspace, "echo b > .git/config; touch .git/hooks/pre-commit; mv .git gone"))

    assert ended.stderr.count(b"Read-only file system") == 2
    assert b"busy" in ended.stderr
    assert (workspace / ".git/config").read_text() == "a\n"


async def test_a_protected_file_replaced_from_outside_stays_protected(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git/config").write_text("one")
    await sandbox.run(bash(workspace, "true"))
    (workspace / ".git/config.lock").write_text("two")
    (workspace / ".git/config.lock").rename(workspace / ".git/config")

    ended = await sandbox.run(bash(workspace, "cat .git/config; echo mine > .git/config"))

    assert (ended.stdout, (workspace / ".git/config").read_text()) == (b"two", "two")


async def test_files_made_inside_belong_to_the_owner_of_the_workspace(sandbox: Sandbox, workspace: Path) -> None:
    await sandbox.run(bash(workspace, "echo x > file; mkdir folder"))

    owner = workspace.stat().st_uid
    assert [(workspace / name).stat().st_uid for name in ("file", "folder")] == [owner, owner]


async def test_the_guarded_network_leads_to_the_proxy_alone(sandbox: Sandbox, workspace: Path) -> None:
    outside = socket.create_server(("127.0.0.1", 0))
    other = f"import socket; socket.create_connection(('127.0.0.1', {outside.getsockname()[1]}), 5)"
    python = shlex.quote(sys.executable)
    script = f'{python} -c "{CONNECT}"; echo $HTTPS_PROXY; {python} -c "{other}"'

    guarded = await sandbox.run(bash(workspace, script, network="guarded"))
    none = await sandbox.run(bash(workspace, f'{python} -c "{CONNECT}"'))
    outside.close()

    assert guarded.stdout == b"hello\nhttp://127.0.0.1:3128\n"
    assert b"Connection refused" in guarded.stderr
    assert b"Address family not supported" in none.stderr


async def test_without_a_proxy_the_guarded_network_is_refused(workspace: Path) -> None:
    sandbox = Sandbox(Layout(workspace=str(workspace)), Strictness())

    with pytest.raises(ToolError) as raised:
        await sandbox.run(bash(workspace, "true", network="guarded"))

    assert raised.value.code is ErrorCode.PERMISSION


async def test_the_network_of_the_host_is_there_when_it_is_asked_for(sandbox: Sandbox, workspace: Path) -> None:
    outside = socket.create_server(("127.0.0.1", 0))
    script = f"exec 3<>/dev/tcp/127.0.0.1/{outside.getsockname()[1]} && echo connected"

    ended = await sandbox.run(bash(workspace, script, network="host"))
    outside.close()

    assert ended.stdout == b"connected\n"


@pytest.mark.parametrize("path", ["/", "/proc", "/dev/shm", "/sys/fs"])
async def test_the_root_and_kernel_files_cannot_be_mounted(sandbox: Sandbox, workspace: Path, path: str) -> None:
    for names in ({"readable": (path,)}, {"writable": (path,)}):
        with pytest.raises(ToolError) as raised:
            await sandbox.run(bash(workspace, "true", **names))

        assert raised.value.code is ErrorCode.PATH_FORBIDDEN
