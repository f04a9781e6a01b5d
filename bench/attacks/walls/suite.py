"""The walls suite: the same probes as root and as an ordinary user, side by side in one table."""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.attacks.outcome import Tally
from tests.sandbox.runner import SOMEBODY, WHO

ROOT = Path(__file__).parent.parent.parent.parent
STAYS = ("blocked", "declared")
WIDTH = 70


async def run(_: Path | None) -> list[Tally]:
    return await replay()


async def replay(*, fast: bool = False, only: str = "") -> list[Tally]:
    """Run the probes as every user that we can be, print the table, and count."""
    columns = dict(zip(WHO, await asyncio.gather(*(_column(who, fast, only) for who in WHO)), strict=True))
    if "root" not in columns:
        print("not root: only the column of an ordinary user")
    _show(columns)
    return [_tally(who, results) for who, results in columns.items()]


async def _column(who: str, fast: bool, only: str) -> list[dict[str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="toolreeve-walls-"))
    folder.chmod(0o755)
    if who == "user" and os.geteuid() == 0:
        os.chown(folder, SOMEBODY, SOMEBODY)
    options = [*(["--fast"] if fast else []), *(["--only", only] if only else [])]
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "bench.attacks.walls.replay", who, str(folder), *options),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "TMPDIR": str(folder)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        said, _ = await process.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    results = [json.loads(line) for line in said.splitlines()]
    if process.returncode or not results:
        gone = {"finding": "-", "name": "the replay itself", "status": "ERROR", "told": f"exit {process.returncode}"}
        results.append({**gone, "seconds": "0"})
    return results


def _show(columns: dict[str, list[dict[str, str]]]) -> None:
    rows: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for who, results in columns.items():
        for result in results:
            rows.setdefault((result["finding"], result["name"]), {})[who] = result
    width = max(len(f"{finding} {name}") for finding, name in rows)
    print(f"{'finding':{width}}  " + "".join(f"as {who:8}" for who in columns) + "what happened")
    for (finding, name), by_user in rows.items():
        cells = "".join(f"{by_user[who]['status'] if who in by_user else '-':11}" for who in columns)
        told = " | ".join(dict.fromkeys(result["told"] for result in by_user.values() if result["told"]))
        print(f"{f'{finding} {name}':{width}}  {cells}{told}")


def _tally(who: str, results: Sequence[dict[str, str]]) -> Tally:
    tally = Tally(name=f"as {who}", payloads=len(results), attempts=len(results))
    for result in results:
        if result["status"] in STAYS:
            tally.refused += 1
        else:
            tally.escaped.append(f"{result['finding']} {result['name']}: {result['status']} {result['told']}"[:WIDTH * 3])
    return tally


if __name__ == "__main__":
    asyncio.run(replay(only=" ".join(sys.argv[1:])))
