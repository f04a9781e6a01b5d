"""The commands of the guide to backups, on a real PostgreSQL."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.record.postgres.server import PostgresServer
from tests.world import World
from toolreeve.config import State


def run(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=os.environ | (env or {}), capture_output=True, text=True, timeout=60)


def verify(url: str, world: World) -> subprocess.CompletedProcess[str]:
    env = {"TOOLREEVE_STATE_URL": url, "TOOLREEVE_STATE_DIR": str(world.state), "HOME": str(world.workspace)}
    return run(sys.executable, "-m", "toolreeve", "audit", "verify", "--workspace", str(world.workspace), env=env)


async def test_a_dump_is_restored_whole_and_verifies(world: World, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    dump = world.workspace.parent / "toolreeve.dump"
    settings = world.settings(state=State(dir=str(world.state), url=url))
    async with world.reeve(settings=settings) as reeve:
        for number in range(20):
            assert (await reeve.call("calculate", expression=f"{number} * 2")).success
    shutil.copytree(world.state, kept := world.workspace.parent / "kept")

    dumped = run("pg_dump", "--format=custom", f"--file={dump}", url)
    async with world.reeve(settings=settings) as reeve:
        assert (await reeve.call("calculate", expression="1")).success
    shutil.rmtree(world.state)
    shutil.copytree(kept, world.state)
    other = postgres.new_database()
    restored = run("pg_restore", f"--dbname={other}", dump)

    assert (dumped.returncode, restored.returncode) == (0, 0), dumped.stderr + restored.stderr
    verified = verify(other, world)
    assert verified.returncode == 0, verified.stderr
    assert "hash chain intact" in verified.stdout
    async with world.reeve(settings=world.settings(state=State(dir=str(world.state), url=other))) as reeve:
        found = await reeve.audit.recent(last_n=100, filters={})
        assert (await reeve.call("calculate", expression="2")).success
    assert len(found) == 20
