"""Probes of the record: acknowledged records that vanish unnoticed, and secrets in them.

Calls are acknowledged, the runtime is killed, files of its state are removed or cut: `audit verify` must say so.
"""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.attacks.probes.testbed import Attack, Testbed, Verdict, blocked_verdict, judge, probe

CALLS = 150
PARTS = (2, 4, 8, 16, 32, 64)
WRITER = """
import asyncio, sys
from toolreeve import Toolreeve
from toolreeve.config import Policy, Settings, State, Workspace
async def main():
    workspace, state = Workspace(dir=sys.argv[1]), State(dir=sys.argv[2])
    settings = Settings(workspace=workspace, state=state, policy=Policy(mode="bypass"))
    async with Toolreeve(settings=settings) as reeve:
        for number in range(int(sys.argv[3])):
            assert (await reeve.call("write_file", path=f"f{number}", content="x")).to_dict()["success"]
        print("acknowledged", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


async def written_and_killed(testbed: Testbed) -> Path:
    """A state directory whose last records were acknowledged and are in the write-ahead log alone."""
    state = testbed.top / "state"
    process = subprocess.Popen(  # noqa: ASYNC220  # killed and waited for below
        [sys.executable, "-c", WRITER, str(testbed.work), str(state), str(CALLS)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        said = await asyncio.to_thread(process.stdout.readline)
        assert said == b"acknowledged\n"
    finally:
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    return state


async def verified(testbed: Testbed) -> tuple[int, str]:
    """The exit status of `audit verify`, and what it said."""
    environment = {"TOOLREEVE_STATE_DIR": str(testbed.top / "state")}
    command = f"{shlex.quote(sys.executable)} -m toolreeve audit verify; echo status $?"
    said = await testbed.host("bash", "-c", command, env=environment)
    return int(said.rsplit("status ", 1)[1]), said


def _logs(state: Path) -> list[Path]:
    found = [path for path in state.rglob("*") if path.name.endswith("-wal")]
    assert found, "the record has no write-ahead log"
    return found


def _remove(state: Path) -> None:
    for log in _logs(state):
        log.unlink()
    for path in state.rglob("*-shm"):
        path.unlink()


def _cut(state: Path) -> None:
    """At the last place that takes a record along: the log is written over and over, and its end may be old."""
    for part in PARTS:
        if _loses(state, partial(_truncate, part=part)):
            return


def _empty(state: Path) -> None:
    for log in _logs(state):
        os.truncate(log, 0)


def _spoil(state: Path) -> None:
    """A few bytes: SQLite ignores everything from there on."""
    for part in PARTS:
        if _loses(state, partial(_overwrite, part=part)):
            return


def _truncate(log: Path, part: int) -> None:
    os.truncate(log, log.stat().st_size // part)


def _overwrite(log: Path, part: int) -> None:
    with log.open("r+b") as file:
        file.seek(log.stat().st_size // part)
        file.write(b"\xff" * 64)


def _loses(state: Path, damage: Callable[[Path], None]) -> bool:
    """Do it to a copy first; only where records are lost to the state itself."""
    kept, tried = _records(state), state.with_name("tried")
    shutil.copytree(state, tried)
    for log in _logs(tried):
        damage(log)
    lost = _records(tried) < kept
    shutil.rmtree(tried)
    if lost:
        for log in _logs(state):
            damage(log)
    return lost


def _records(state: Path) -> int:
    """Counted in a copy: whoever opens a database changes its log."""
    copy = state.with_name("counted")
    shutil.copytree(state, copy)
    try:
        database = next(path for path in copy.rglob("*.db") if path.with_name(path.name + "-wal").exists())
        with contextlib.closing(sqlite3.connect(database)) as connection:
            return int(connection.execute("SELECT count(*) FROM audit").fetchone()[0])
    finally:
        shutil.rmtree(copy)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "removed": _remove,
    "cut": _cut,
    "emptied": _empty,
    "spoiled": _spoil,
}


def _damaged(damage: Callable[[Path], None]) -> Attack:
    async def attack(testbed: Testbed) -> Verdict:
        damage(await written_and_killed(testbed))
        status, said = await verified(testbed)
        return judge(["verify is content"] if status == 0 else [], said.splitlines()[0][:90])

    return attack


for _name, _damage in DAMAGES.items():
    probe("M6", f"write-ahead log {_name} after kill -9", fast=False)(_damaged(_damage))


@probe("M6", "an untouched record after kill -9 verifies", fast=False)
async def untouched(testbed: Testbed) -> Verdict:
    await written_and_killed(testbed)
    status, said = await verified(testbed)
    return blocked_verdict("intact") if status == 0 else judge([f"wrongly accused: {said[:120]}"])


@probe("M6", "a removed checkpoint is not remade silently after a cut", fast=False)
async def remade(testbed: Testbed) -> Verdict:
    state = await written_and_killed(testbed)
    _remove(state)
    for path in witnesses(state):
        path.unlink()
    first, _ = await verified(testbed)
    await testbed.bash("true")
    await testbed.close()
    second, said = await verified(testbed)
    breaches = [] if first else ["verify is content at once"]
    breaches += [] if second else ["verify is content after the next call"]
    return judge(breaches, said.splitlines()[0][:90])


def witnesses(state: Path) -> list[Path]:
    """What is kept apart from the record and says how far it went."""
    found = [
        path
        for path in state.rglob("*")
        if path.is_file() and ("checkpoint" in path.name or path.parent.name == "witness")
    ]
    assert found, "nothing says how far the record went"
    return found


@probe("L8", "a witness of the record that is all zeros", fast=False)
async def zeros(testbed: Testbed) -> Verdict:
    """As text with the number and hash of nothing, and as zeros of the same size."""
    content = []
    for text in (json.dumps({"seq": 0, "hash": "00" * 32}).encode(), None):
        await testbed.bash("true")
        await testbed.close()
        for path in witnesses(testbed.top / "state"):
            path.write_bytes(bytes(path.stat().st_size) if text is None else text)
        status, said = await verified(testbed)
        if status == 0:
            content.append(f"verify is content with {'zeros' if text is None else 'a checkpoint of nothing'}")
    return judge(content, said.splitlines()[0][:90])


LONG = "Zx8Kq3Vn7Rt2Wp9Ym4Lc6Bd1Hf5Js0GaQeUiOo"
SECRETS: dict[str, str] = {
    "PGPASSWORD": "PGPASSWORD=%s psql",
    "password:": "password: %s",
    "mysql -p": "mysql -uroot -p%s db",
    "curl -u": "curl -u ada:%s https://x.example",
    "sshpass": "sshpass -p %s ssh h",
    "Azure": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%s%s==;EndpointSuffix=x",
    "SendGrid": "SG.%.22s.%s",
    "Vault": "hvs.%s",
    "PyPI": "pypi-AgEIcHlwaS5vcmc%s",
    "DigitalOcean": "dop_v1_" + "0123456789abcdef" * 4,
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
    "Groq": "gsk_%s%s",
    "xAI": "xai-%s%s",
    "Replicate": "r8_%s",
    "Shopify": "shpat_0123456789abcdef0123456789abcdef",
    "Linear": "lin_api_%s",
    "GitHub": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "GitLab": "glpat-0123456789abcdefghij",
    "AWS": "AKIAIOSFODNN7EXAMPLE",
    "AWS secret": "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab",
    "Slack": "xoxb-123456789012-abcdefABCDEF0123",
    "Slack webhook": "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "Stripe": "sk_live_0123456789abcdefghijABCD",
    "Google": "AIzaSyA0123456789abcdefghijABCDEFGHIJ01",
    "npm": "npm_0123456789abcdefghijABCDEFGHIJ012345",
    "Hugging Face": "hf_0123456789abcdefghijABCDEFGHIJ0123",
    "Anthropic": "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789",
    "Telegram": "123456789:AAF0123456789abcdefghijABCDEFGHIJ0",
    "Databricks": "dapi0123456789abcdef0123456789abcdef",
    "Doppler": "dp.pt.0123456789abcdefghijABCDEFGHIJ0123456789abc",
    "New Relic": "NRAK-0123456789ABCDEFGHIJ0123456",
    "Postman": "PMAK-0123456789abcdef01234567-0123456789abcdef0123456789abcdef01",
    "Grafana": "glsa_0123456789abcdefghijABCDEFGHIJ01_01234567",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "URL": "postgres://ada:%.20s@db.example/x",
    "Authorization": "Authorization: Bearer %s",
    "key file": "-----BEGIN OPENSSH PRIVATE KEY----- %s -----END OPENSSH PRIVATE KEY-----",
}


@probe("L4", f"{len(SECRETS)} shapes of secrets in commands and their output", fast=False)
async def shapes(testbed: Testbed) -> Verdict:
    texts = {name: _filled(shape, number) for number, (name, shape) in enumerate(SECRETS.items())}
    for text, _ in texts.values():
        await testbed.bash(f"echo '{text}'")
    await testbed.close()
    stored = b"".join(path.read_bytes() for path in (testbed.top / "state").rglob("*") if path.is_file())
    left = [name for name, (_, secret) in texts.items() if secret.encode() in stored]
    return judge([f"{len(left)} of {len(texts)} written down: {', '.join(left)}"] if left else [])


def _filled(shape: str, number: int) -> tuple[str, str]:
    """The text, and the part of it that must not be found, which is in no other text."""
    if "%" in shape:
        secret = f"{number:02}{LONG}"
        return shape % ((secret,) * shape.count("%")), secret[:18]
    text = shape.replace("0123456789", f"{number:02}73916485")
    at = text.find(f"{number:02}73916485")
    return text, text[at : at + 14] if at >= 0 else text[-24:]
