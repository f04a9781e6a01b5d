"""Cost of the confinements: look and try against work and a plain asyncio spawn."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from pathlib import Path

from bench.measure import Row
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.core.trial import Confinement
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness
from toolreeve.trial.layer_reader import read_layer

CALLS = 60
FILES = 5_000
PAUSE = 0.05
"""Between commands, as a model pauses: the next place for a trial is prepared meanwhile."""
TRUE = ("/bin/bash", "-c", "true")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "small")
STATUS = ("git", "status", "--porcelain")
_LIMITS = ProcessLimits(timeout=60, memory_mb=1024, open_files=1024, processes=64)
_calls = count()
Work = Callable[[], Awaitable[object]]


async def trials() -> list[Row]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # on a disk, as projects are
        _make_project(Path(folder))
        layout = Layout(workspace=folder, readable=(sys.base_prefix, sys.prefix), layer_mb=256)
        held = Sandbox(layout, Strictness(require="full"))
        try:
            return await _measure(held, folder)
        finally:
            await held.close()


async def _measure(held: Sandbox, folder: str) -> list[Row]:
    def run(argv: tuple[str, ...], confinement: Confinement) -> Work:
        return lambda: _run(held, folder, argv, confinement)

    look, attempt, work = Confinement.LOOK, Confinement.TRY, Confinement.WORK
    small = await _interleave({"plain": _plain, **{each: run(TRUE, each) for each in (look, attempt, work)}}, CALLS)
    tests = await _interleave({each: run(PYTEST, each) for each in (attempt, work)}, 5)
    status = await _interleave({each: run(STATUS, each) for each in (look, attempt, work)}, 15)
    harvest = await _harvest(held, folder)
    return [
        _row("look: bash -c true", small, look, work, 1.05),
        _row("try: bash -c true, against a plain spawn", small, attempt, "plain", 1.2),
        _row("try: pytest of 100 tests", tests, attempt, work, 1.05),
        _row(f"look: git status of {FILES} files, as it is decided", status, look, work, 1.3),
        _row(f"try: git status of {FILES} files, as part of a script", status, attempt, work, None),
        Row(
            name="try: read a layer without changes",
            value=f"{harvest * 1000:.2f} ms",
            p50=harvest,
            target="≤ 0.5 ms",
            met=harvest <= 0.0005,
        ),
    ]


async def _interleave(works: Mapping[str, Work], rounds: int) -> dict[str, float]:
    """The median seconds of each. Every round begins with another one: what runs before leaves warm or cold caches."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    order = list(works.items())
    for number in range(rounds + 2):
        order = [*order[1:], order[0]]
        for name, work in order:
            began = time.perf_counter()
            await work()
            if number >= 2:
                taken[name].append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE)
    return {name: statistics.median(times) for name, times in taken.items()}


async def _run(held: Sandbox, folder: str, argv: tuple[str, ...], confinement: Confinement) -> None:
    call = f"call-{next(_calls)}"
    request = ProcessRequest(
        argv=argv, directory=folder, neutral_git=True, confinement=confinement, limits=_LIMITS, call=call
    )
    ended = await held.run(request)
    assert ended.exit_code == 0, ended
    for layer in held.end_trial(call):
        os.close(layer.upper)


async def _plain() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*TRUE, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    await process.communicate()


async def _harvest(held: Sandbox, folder: str) -> float:
    guards = GuardTable(roots=(folder,))
    taken = []
    for _ in range(20):
        call = f"call-{next(_calls)}"
        await held.run(
            ProcessRequest(argv=TRUE, directory=folder, confinement=Confinement.TRY, limits=_LIMITS, call=call)
        )
        (layer,) = held.end_trial(call)
        began = time.perf_counter()
        read_layer(layer, guards)
        taken.append(time.perf_counter() - began)
        os.close(layer.upper)
    return statistics.median(taken)


def _row(name: str, times: Mapping[str, float], measured: str, baseline: str, most: float | None) -> Row:
    """Without `most`, for information: in a new overlay every file is looked up for the first time."""
    ratio = times[measured] / times[baseline]
    value = f"{times[measured] * 1000:.2f} ms, {baseline} {times[baseline] * 1000:.2f} ms"
    if most is None:
        return Row(name=name, value=value, ratio=ratio, p50=times[measured])
    return Row(name=name, value=value, ratio=ratio, p50=times[measured], target=f"≤ {most}×", met=ratio <= most)


def _make_project(folder: Path) -> None:
    for number in range(FILES):
        place = folder / f"d{number % 50}"
        place.mkdir(exist_ok=True)
        (place / f"f{number}.txt").write_text("text\n")
    (folder / "small").mkdir()
    tests = "".join(f"def test_{number}():\n    assert {number} + 1\n" for number in range(100))
    (folder / "small/test_all.py").write_text(tests)
    for arguments in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
