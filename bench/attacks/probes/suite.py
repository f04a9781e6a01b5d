"""The probe suite: each probe as root and as an ordinary user, in one table."""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.sandbox.runner import UNPRIVILEGED_UID, WHO

from bench.attacks.outcome import Tally

ROOT = Path(__file__).parent.parent.parent.parent
STAYS = ("blocked", "declared")
SHARES = 3
SHOWN_CHARACTERS = 210

Result = dict[str, Any]


async def run(_: Path | None) -> list[Tally]:
    return await replay()


async def replay(*, fast: bool = False, only: str = "") -> list[Tally]:
    """Run the probes as every user that we can be, print the table, and count."""
    options: list[str] = []
    if fast:
        options.append("--fast")
    if only:
        options += ["--only", only]
    columns = dict(zip(WHO, await asyncio.gather(*(_column(who, options) for who in WHO)), strict=True))
    if "root" not in columns:
        print("not running as root: only the column of an ordinary user")
    _show(columns)
    return [_tally(who, results) for who, results in columns.items()]


async def _column(who: str, options: Sequence[str]) -> list[Result]:
    """All probes as one user: shared among a few processes, and then those that must be alone."""
    folder = Path(tempfile.mkdtemp(prefix="toolreeve-probes-"))
    folder.chmod(0o755)
    if who == "user" and os.geteuid() == 0:
        os.chown(folder, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    try:
        shares = [[*options, "--share", f"{number}/{SHARES}"] for number in range(SHARES)]
        found = await asyncio.gather(*(_process(who, folder, share) for share in shares))
        together = sorted((result for results in found for result in results), key=lambda result: result["number"])
        return [*together, *await _process(who, folder, [*options, "--alone"])]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _process(who: str, folder: Path, options: Sequence[str]) -> list[Result]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.attacks.probes.replay", who, str(folder), *options),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "TMPDIR": str(folder)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    results: list[Result] = [json.loads(line) for line in said.splitlines()]
    if process.returncode:
        detail = f"exit status {process.returncode}"
        results.append(
            {
                "number": -1,
                "finding": "-",
                "name": "the replay itself",
                "status": "ERROR",
                "detail": detail,
                "seconds": 0,
            }
        )
    return results


def _show(columns: dict[str, list[Result]]) -> None:
    rows: dict[tuple[str, str], dict[str, Result]] = {}
    for who, results in columns.items():
        for result in results:
            rows.setdefault((result["finding"], result["name"]), {})[who] = result
    width = max(len(f"{finding} {name}") for finding, name in rows)
    print(f"{'finding':{width}}  " + "".join(f"as {who:8}" for who in columns) + "what happened")
    for (finding, name), by_user in rows.items():
        cells = "".join(f"{by_user[who]['status'] if who in by_user else '-':11}" for who in columns)
        detail = " | ".join(dict.fromkeys(result["detail"] for result in by_user.values() if result["detail"]))
        print(f"{f'{finding} {name}':{width}}  {cells}{detail}")


def _tally(who: str, results: Sequence[Result]) -> Tally:
    tally = Tally(name=f"as {who}", payloads=len(results), attempts=len(results))
    for result in results:
        if result["status"] in STAYS:
            tally.refused += 1
        else:
            tally.escaped.append(
                f"{result['finding']} {result['name']}: {result['status']} {result['detail']}"[:SHOWN_CHARACTERS]
            )
    return tally


if __name__ == "__main__":
    asyncio.run(replay(only=" ".join(sys.argv[1:])))
