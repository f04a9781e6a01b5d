"""Runs the probes as one user; one line of JSON for each.

python -m bench.attacks.probes.replay WHO FOLDER [--fast] [--only TEXT] [--share 0/3 | --alone]
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.sandbox.runner import drop_root

from bench.attacks.probes import catalogue
from bench.attacks.probes.testbed import Probe, Testbed, Verdict

TIMEOUT = 60


async def _attack(probe: Probe, folder: Path) -> Verdict:
    """A probe that cannot be carried out proves nothing, and so counts as open."""
    testbed = Testbed(folder)
    try:
        async with asyncio.timeout(TIMEOUT):
            return await probe.attack(testbed)
    except Exception as problem:
        return Verdict("ERROR", f"{type(problem).__name__}: {problem}"[:300])
    finally:
        await testbed.close()
        testbed.remove()


def _results(probes: list[tuple[int, Probe]], folder: Path) -> Iterator[dict[str, object]]:
    for number, probe in probes:
        began = time.monotonic()
        verdict = asyncio.run(_attack(probe, folder / f"p{number}"))
        seconds = round(time.monotonic() - began, 2)
        yield {"number": number, "finding": probe.finding, "name": probe.name, "seconds": seconds, **asdict(verdict)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("who", choices=("root", "user"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    if options.who == "user" and os.geteuid() == 0:
        drop_root()
    os.umask(0o022)
    home = options.folder / f"home-{os.getpid()}"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_", "TOOLREEVE_"))]:
        del os.environ[name]
    os.environ |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    index, _, count = options.share.partition("/")
    found = list(enumerate(catalogue.probes(fast=options.fast, only=options.only, alone=options.alone)))
    for result in _results(found[int(index) :: int(count)], options.folder):
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
