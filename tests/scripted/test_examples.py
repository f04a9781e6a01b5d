"""Each shipped example runs against real programs and servers."""

import asyncio
import csv
import io
import json
import os
import shutil
import socket
import sqlite3
import struct
import subprocess
import tarfile
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scripted.scripted_world import ScriptedWorld, yes
from toolreeve import Toolreeve
from toolreeve.config import Network

EXAMPLES = Path(__file__).parents[2] / "examples" / "tools.yaml"


@pytest.fixture
async def reeve(scripted: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Toolreeve]:
    monkeypatch.setenv("PGPASSWORD", "correct-horse-battery")
    async with scripted.reeve(settings=scripted.settings(tool_files=(str(EXAMPLES),)), approve=yes) as reeve:
        yield reeve


async def output(reeve: Toolreeve, tool: str, **args: Any) -> str:
    result = await reeve.call(tool, args)
    assert result.success, result.to_text()
    return str(result.output)


async def test_there_are_at_least_ten_and_all_load(reeve: Toolreeve) -> None:
    assert reeve.problems == ()
    assert sum(tool.spec.source == str(EXAMPLES) for tool in reeve.tools) >= 10


async def test_curl_request_speaks_to_a_server_through_the_guard(scripted: ScriptedWorld) -> None:
    seen: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            (int(line.split(":")[1]) for line in head.lower().splitlines() if line.startswith("content-length")), 0
        )
        seen.append(head + (await reader.readexactly(length)).decode())
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        args = {"method": "POST", "headers": {"X-Mark": "it's $(id)"}, "data": {"name": "O'Hara"}}
        network = Network(allow=(f"127.0.0.1:{port}",))
        settings = scripted.settings(tool_files=(str(EXAMPLES),), network=network)
        async with scripted.reeve(settings=settings, approve=yes) as reeve:
            printed = await output(reeve, "curl_request", url=f"http://127.0.0.1:{port}/a?b=c&d", **args)
            elsewhere = await output(reeve, "curl_request", url=f"http://127.0.0.2:{port}/")

    assert printed == "hello\nSTATUS:201\n"
    assert elsewhere.endswith("STATUS:403\n")
    assert "POST " in seen[0]
    assert "x-mark: it's $(id)" in seen[0].lower()
    assert seen[0].endswith('{"name":"O\'Hara"}')


async def test_sqlite_query_reads_and_neither_writes_nor_runs(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    with sqlite3.connect(scripted.workspace / "a.db") as database:
        database.execute("create table t (name text)")
        database.execute("insert into t values ('O''Hara'), ('$(id)')")
    database.close()

    rows = json.loads(await output(reeve, "sqlite_query", database="a.db", query="select name from t order by 1"))
    written = await reeve.call("sqlite_query", database="a.db", query="delete from t")
    shell = await reeve.call("sqlite_query", database="a.db", query=".shell touch pwned")
    edit = await reeve.call("sqlite_query", database="a.db", query="select edit('x', 'touch pwned')")

    assert [row["name"] for row in rows] == ["$(id)", "O'Hara"]
    assert not written.success
    assert shell.error is not None
    assert "may not begin with" in shell.error.message
    assert not edit.success
    assert not (scripted.workspace / "pwned").exists()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server of its own; it will not run as root, so there it runs as its package's user."""
    as_root = os.getuid() == 0
    programs = next(Path("/usr/lib/postgresql").glob("*/bin"))
    home = Path(subprocess.check_output(["mktemp", "-d", "/tmp/toolreeve-postgres-XXXX"], text=True).strip())
    if as_root:
        shutil.chown(home, "postgres")
    (home / "password").write_text("correct-horse-battery")
    (home / "password").chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = ["-D", f"{home}/data", "-A", "scram-sha-256", "-U", "postgres", "--pwfile", f"{home}/password", "-N"]
    options = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [f"{programs}/pg_ctl", "-D", f"{home}/data", "-w", "-t", "30", "-l", f"{home}/log"]
    run = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if as_root else []
    subprocess.run([*run, f"{programs}/initdb", *made], check=True, stdout=subprocess.DEVNULL, cwd=home)
    subprocess.run([*run, *control, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd=home)
    yield port
    subprocess.run([*run, *control, "-m", "immediate", "stop"], check=True, stdout=subprocess.DEVNULL, cwd=home)
    shutil.rmtree(home)


async def test_postgres_query_logs_in_with_a_secret_and_returns_rows(
    reeve: Toolreeve, scripted: ScriptedWorld, postgres: int
) -> None:
    where = {"database": "postgres", "host": "127.0.0.1", "port": postgres}

    printed = await output(reeve, "postgres_query", query="select 'a;$(id)' as x, 2 as y", **where)
    wrong = await reeve.call("postgres_query", query="select nothing", **where)
    shell = await reeve.call("postgres_query", query="\\! touch pwned", **where)

    assert list(csv.reader(io.StringIO(printed))) == [["x", "y"], ["a;$(id)", "2"]]
    assert wrong.error is not None
    assert shell.error is not None
    assert "may not begin with" in shell.error.message
    assert not (scripted.workspace / "pwned").exists()
    assert b"correct-horse" not in scripted.database_bytes()


async def test_find_in_files_finds(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    (scripted.workspace / "src").mkdir()
    (scripted.workspace / "src" / "a b.py").write_text("-x TODO; $(id)\n")
    (scripted.workspace / "src" / "c.txt").write_text("TODO\n")

    assert await output(reeve, "find_in_files", text="-x TODO;", pattern="*.py") == "././src/a b.py\n"
    assert await output(reeve, "find_in_files", text="TODO", directory="src", limit=1) == "./src/a b.py\n"


async def test_git_history_lists_commits(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        subprocess.run(["git", *identity, *words], cwd=scripted.workspace, check=True, stdout=subprocess.DEVNULL)

    git("init", "-q")
    for name in ("one", "two"):
        (scripted.workspace / name).write_text(name)
        git("add", name)
        git("commit", "-q", "-m", f"Add {name}")

    assert [line.split(": ")[1] for line in (await output(reeve, "git_history")).splitlines()] == ["Add two", "Add one"]
    assert (await output(reeve, "git_history", path="one")).endswith("Ann: Add one\n")


async def test_json_query_filters(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    (scripted.workspace / "a.json").write_text('{"a": [{"b": 1}, {"b": 2}]}')

    assert await output(reeve, "json_query", file="a.json", filter="[.a[].b]") == "[1,2]\n"


async def test_disk_usage_lists_the_largest_first(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    (scripted.workspace / "large").write_bytes(b"x" * 500_000)
    (scripted.workspace / "small").write_bytes(b"x")

    lines = (await output(reeve, "disk_usage")).splitlines()

    assert lines[1].endswith("large")
    assert int(lines[1].split()[0]) >= 488


async def test_archive_list_names_what_is_inside_or_says_there_is_none(
    reeve: Toolreeve, scripted: ScriptedWorld
) -> None:
    (scripted.workspace / "inside.txt").write_text("x")
    with tarfile.open(scripted.workspace / "a.tar.gz", "w:gz") as archive:
        archive.add(scripted.workspace / "inside.txt", "inside.txt")

    missing = await reeve.call("archive_list", archive="none.tar")

    assert "inside.txt" in await output(reeve, "archive_list", archive="a.tar.gz")
    assert missing.error is not None
    assert (missing.error.code, missing.error.detail) == ("E_PATH_NOT_FOUND", "No readable archive at none.tar")


async def test_image_info_knows_an_image(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0)
    body = zlib.compress(b"\0\0\0\0" * 2)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    (scripted.workspace / "a.png").write_bytes(png)

    assert "PNG image data, 3 x 2" in await output(reeve, "image_info", image="a.png")


async def test_word_count_counts_each_file(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    (scripted.workspace / "a b").write_text("one two\n")
    (scripted.workspace / "-c").write_text("three\n")

    assert [line.split() for line in (await output(reeve, "word_count", files=["a b", "-c"])).splitlines()] == [
        ["1", "2", "8", "./a", "b"],
        ["1", "1", "6", "./-c"],
        ["2", "3", "14", "total"],
    ]


async def test_csv_columns_runs_in_python(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    (scripted.workspace / "a.csv").write_text("x,y\n1,\n2,3\n")

    assert json.loads(await output(reeve, "csv_columns", file="a.csv")) == {"x": 2, "y": 1}


async def test_remove_folder_asks_and_removes(reeve: Toolreeve, scripted: ScriptedWorld) -> None:
    (scripted.workspace / "old" / "deep").mkdir(parents=True)

    outside = await reeve.call("remove_folder", folder="../state")
    await output(reeve, "remove_folder", folder="old")

    assert outside.error is not None
    assert not (scripted.workspace / "old").exists()
