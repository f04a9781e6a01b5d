"""How long does it take to know what a command would do? CPU time of one-liners, of long commands, and of loading.

The one-liners are the examples of the specifications, or `benign_nl2bash.jsonl` of the directory named in CORPORA.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles

import yaml

from bench.measure import Row, micros
from toolreeve.policy.shell import programs
from toolreeve.policy.shell.analysis import analyse

REPEATS = 5
_LOADING = """
import time
from toolreeve.policy.shell import specs
start = time.process_time()
specs.program("cat")
print(time.process_time() - start)
"""
LONG = "grep -n '" + "some pattern|" * 740 + "' src/file.py | sort -u && ls"
WORDS = "cat " + " ".join(f"src/file{number}.py" for number in range(700))
CHAIN = "grep -n foo src/file.py | sort -u && " * 150 + "ls"
DIFFERENT = "".join(f"grep -n foo{number} src/file{number}.py | sort -u && " for number in range(150)) + "ls"


async def knowing() -> list[Row]:
    commands = _one_liners()
    for command in commands:
        _seconds(command, repeats=1)
    times = [_seconds(command) for command in commands]
    p50, p99 = median(times), quantiles(times, n=100)[98]
    loaded = _loading()
    return [
        Row(name=f"knowing one of {len(commands)} one-liners, CPU", value=micros(p50), p50=p50, p99=p99,
            target="≤ 150 µs", met=p50 <= 150e-6),
        _long("… 10 KB in one long pattern", LONG),
        _long("… 10 KB in 700 words", WORDS),
        _long("… 5.5 KB in 301 commands", CHAIN),
        Row(name="… 6 KB in 301 commands of which half differ", value=f"{_seconds(DIFFERENT) * 1000:.2f} ms"),
        Row(name="… longer than 64 KB", value=micros(_seconds("a" * 70_000)), target="at once"),
        Row(name="loading the specifications", value=f"{loaded * 1000:.1f} ms", target="≤ 30 ms", met=loaded <= 0.03),
    ]  # fmt: skip


def _loading() -> float:
    """In a process of its own, which has loaded nothing yet."""
    ran = subprocess.run([sys.executable, "-c", _LOADING], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def _long(name: str, command: str) -> Row:
    seconds = _seconds(command)
    return Row(name=name, value=f"{seconds * 1000:.2f} ms", target="≤ 2 ms", met=seconds <= 0.002)


def _one_liners() -> list[str]:
    if corpora := os.environ.get("CORPORA"):
        with (Path(corpora) / "benign_nl2bash.jsonl").open() as lines:
            return [json.loads(line)["cmd"] for line in lines]
    found: list[str] = []
    for path in sorted(Path(programs.__file__).parent.glob("*.yaml")):
        _collect(yaml.safe_load(path.read_text()), found)
    return found


def _collect(value: object, found: list[str]) -> None:
    """Every example below `matches` and `not_matches`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("matches", "not_matches"):
                found.extend(inner)
            else:
                _collect(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _collect(inner, found)


def _seconds(command: str, *, repeats: int = REPEATS) -> float:
    start = time.process_time()
    for _ in range(repeats):
        analyse(command, cwd="/project", home="/home/me", root="/project")
    return (time.process_time() - start) / repeats
