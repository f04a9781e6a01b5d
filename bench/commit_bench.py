"""Cost of reading what a trial changed, and of committing it."""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.measure import Row
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.openat2 import sync_file_system
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.core.trial import Confinement, Layer, wait_for_tick
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness
from toolreeve.trial.commits import Commits
from toolreeve.trial.harvest import Harvest
from toolreeve.trial.layer_reader import read_layer

ROUNDS = 3
FILES = 5_000
APPEND = "for n in range({}): open(f'f{{n}}', 'a').write('x')"
T = TypeVar("T")
_LIMITS = ProcessLimits(timeout=60, memory_mb=1024, open_files=256)


async def commits() -> list[Row]:
    with tempfile.TemporaryDirectory() as top:
        workspace = Path(top, "workspace")
        workspace.mkdir()
        for number in range(FILES):
            (workspace / f"f{number}").write_text(f"{number}\n" * 50)
        held = Sandbox(
            Layout(workspace=str(workspace), readable=(sys.base_prefix, sys.prefix), layer_mb=256), Strictness()
        )
        try:
            return await _measure(held, workspace, Commits(Path(top, "state")))
        finally:
            await held.close()


async def _measure(held: Sandbox, workspace: Path, kept: Commits) -> list[Row]:
    guards = GuardTable(roots=(str(workspace),))
    rows: list[Row] = []
    for count, most in ((0, 0.0), (1, 0.0), (100, 0.030), (FILES, 1.5)):
        reading: list[float] = []
        committing: list[float] = []
        undoing: list[float] = []
        copying: list[float] = []
        for number in range(ROUNDS):
            copying.append(_timed(lambda number=number, count=count: _copy(workspace, count, number))[0])  # type: ignore[misc]
            layer = await _trial(held, workspace, APPEND.format(count), f"{count}-{number}")
            seconds, harvest = _timed(lambda layer=layer: read_layer(layer, guards))  # type: ignore[misc]
            reading.append(seconds)
            if harvest.kept:
                seconds, id_ = _timed(lambda harvest=harvest: _commit(kept, harvest))  # type: ignore[misc]
                committing.append(seconds)
                undoing.append(_timed(lambda id_=id_: kept.toggle(id_, undo=True))[0])  # type: ignore[misc]
            os.close(layer.upper)
        rows += _rows(count, reading, committing, undoing, copying, most)
    return rows


async def _trial(held: Sandbox, workspace: Path, code: str, call: str) -> Layer:
    await wait_for_tick()
    request = ProcessRequest(
        argv=("/usr/bin/python3", "-c", code),
        directory=str(workspace),
        confinement=Confinement.TRY,
        call=call,
        limits=_LIMITS,
    )
    ended = await held.run(request)
    assert ended.exit_code == 0, ended.stderr
    (layer,) = held.end_trial(call)
    return layer


def _commit(kept: Commits, harvest: Harvest) -> str:
    prepared = kept.prepare(harvest)
    prepared.apply()
    return prepared.plan.id


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _copy(workspace: Path, count: int, number: int) -> None:
    """What any program would need to write the same files durably: the baseline."""
    target = workspace.with_name(f"copy-{count}-{number}")
    target.mkdir()
    for name in (f"f{each}" for each in range(count)):
        shutil.copy2(workspace / name, target / name)
    descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    sync_file_system(descriptor)
    os.close(descriptor)


def _rows(
    count: int,
    reading: list[float],
    committing: list[float],
    undoing: list[float],
    copying: list[float],
    most: float,
) -> list[Row]:
    read = statistics.median(reading)
    if not committing:
        return [Row(name="read a trial that changed nothing", value=_ms(read), target="≤ 0.5 ms", met=read <= 0.0005)]
    commit = statistics.median(committing)
    met = commit <= most if most else None
    target = f"≤ {_ms(most)}" if most else ""
    copy = statistics.median(copying)
    return [
        Row(name=f"copy {count:,} files and sync", value=_ms(copy)),
        Row(name=f"read a trial that changed {count:,} files", value=_ms(read)),
        Row(
            name=f"commit {count:,} changed files, synced",
            value=_ms(commit),
            ratio=commit / copy,
            target=target,
            met=met,
        ),
        Row(name=f"undo {count:,} changed files", value=_ms(statistics.median(undoing))),
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"
