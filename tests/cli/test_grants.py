import asyncio
from pathlib import Path

from tests.approval.granted_process import granted_process
from tests.cli.conftest import Shell
from toolreeve.core.errors import ExitStatus


def state(shell: Shell) -> Path:
    return shell.home / ".local/state/toolreeve"


def test_without_grants_there_is_nothing_to_list_or_revoke(shell: Shell) -> None:
    assert "no grants" in shell.run("approvals", "grants").err
    assert shell.run("approvals", "grants", "--json").json == []
    assert shell.run("approvals", "revoke", "--all").status == 0
    assert shell.run("approvals", "revoke", "abc").status == ExitStatus.NOT_FOUND
    assert shell.run("approvals", "revoke").status == 2
    assert shell.run("approvals", "revoke", "abc", "--all").status == 2


def test_a_grant_is_listed_in_words_and_revoked_in_a_running_process_and_recorded(shell: Shell) -> None:
    async def work() -> None:
        async with granted_process(shell.workspace, state(shell)) as process:
            assert await process.call("default", issued=False, grant={"uses": 5})
            assert await process.call("default", issued=False)
            (grant,) = (await asyncio.to_thread(shell.spawn, "approvals", "grants", "--json")).json
            listed = (await asyncio.to_thread(shell.spawn, "approvals", "grants")).out.splitlines()
            revoked = await asyncio.to_thread(shell.spawn, "approvals", "revoke", grant["id"])

            assert (revoked.status, revoked.out) == (0, "revoked: 1\n")
            assert not await process.call("default", issued=False)
            assert (grant["covers"], grant["uses"]) == (f"write {shell.workspace}/a.txt", 3)
            assert (grant["session"], grant["client"], grant["granted_by"]) == ("default", "agent", "Ann")
            assert listed[1].split()[:5] == [grant["id"], "write_file", "local", "default", "agent"]
            lines = (await asyncio.to_thread(shell.spawn, "audit", "export")).out
            assert lines.count(grant["id"]) == 2
            assert "revoked_by" in lines

    asyncio.run(work())


def test_the_grants_of_a_killed_process_are_not_listed(shell: Shell) -> None:
    async def work() -> None:
        async with granted_process(shell.workspace, state(shell)) as process:
            assert await process.call("default", issued=False, grant={})
            process.process.kill()
            await process.process.wait()
            assert (await asyncio.to_thread(shell.spawn, "approvals", "grants", "--json")).json == []

    asyncio.run(work())
