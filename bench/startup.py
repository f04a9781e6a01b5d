"""Start-up time: Python, importing the package, and the command line's help."""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Row

TIMES = 15


def _run(*command: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command, the medians; bytecode is cached as an installed package has it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    wall_times = []
    cpu_times = []
    for number in range(TIMES + 2):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if number > 1:
            wall_times.append(time.perf_counter() - began)
            cpu_times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(wall_times), statistics.median(cpu_times)


async def startup() -> list[Row]:
    python, python_cpu = _run(sys.executable, "-c", "pass")
    _, import_cpu = _run(sys.executable, "-c", "from toolreeve import Toolreeve")
    help_, _ = _run(str(Path(sys.executable).with_name("toolreeve")), "--help")
    return [
        Row(name="python -c pass", value=f"{python * 1000:.0f} ms", p50=python),
        Row(
            name="toolreeve --help",
            value=f"{help_ * 1000:.0f} ms",
            ratio=help_ / python,
            p50=help_,
            target="≤ 1.5× + 100 ms",
            met=help_ <= 1.5 * python + 0.1,
        ),
        Row(
            name="import of the runtime, CPU beyond Python's own",
            value=f"{(import_cpu - python_cpu) * 1000:.0f} ms",
            target="≤ 150 ms",
            met=import_cpu - python_cpu <= 0.15,
        ),
    ]
