"""Cost of the shell analysis: CPU time of one-liners, long commands and loading.

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
from toolreeve.policy.shell.programs import spec
start = time.process_time()
spec.program("cat")
print(time.process_time() - start)
"""
LONG = "grep -n '" + "some pattern|" * 740 + "' src/file.py | sort -u && ls"
WORDS = "cat " + " ".join(f"src/file{number}.py" for number in range(700))
CHAIN = "grep -n foo src/file.py | sort -u && " * 150 + "ls"
HEREDOC = "cat > src/new.py <<'EOF'\n" + "def function(value):\n    return f'$x {value}'\n" * 220 + "EOF\n"
KINDS = (
    "cat -n src/part{0}.py docs/pages/page{0}.md",
    "head -n {0} logs/archive/day{0}.log",
    "grep -rn 'name {0}' src/modules/dir{0}",
    "git log --oneline -{0} src/file{0}.py",
    "find libraries/lib{0} -name '*.c' -type f",
    "sed -n '{0}p' docs/chapters/page{0}.md",
    "sort -k{0} -t, data/tables/t{0}.csv",
    "wc -l src/left{0}.py src/right{0}.py",
    "ls -la build/objects/{0}/out",
    "diff -u before/{0}.txt after/{0}.txt",
    "stat -c %s bin/programs/tool{0}",
    "jq '.items[{0}]' data/exports/{0}.json",
    "cut -d: -f{0} data/people/users{0}",
    "git show HEAD:src/module{0}.py",
    "awk '{{print ${0}}}' tables/table{0}.txt",
    "rg -l word{0} src/searched/s{0}",
    "mkdir -p out/results/run{0}",
    "kubectl get pods -n space{0}",
)


def different(count: int) -> str:
    """So many commands that all differ."""
    return " && ".join(KINDS[number % len(KINDS)].format(number) for number in range(count))


MIXTURES = (
    "grep -n 'needle number {0}' src/package/*/module{0}*.py > reports/findings-{0}.txt 2>&1",
    'size{0}=$(wc -l < docs/chapters/page-{0}.md); echo "chapter {0} has $size{0} lines of ${{total}}"',
    "ls -l build/objects/*{0}/[a-c]?.o 2>/dev/null | sort -k5 -n | tail -n {0}",
    'head -n {0} "$HOME"/notes/2024/day{0}.txt | sort -u >> collected/everything.txt',
    "cat data/exports/table-{0}-*.csv | cut -d, -f{0} | uniq -c > summaries/table-{0}.txt",
    "diff <(sort before/names-{0}.txt) <(sort after/names-{0}.txt)",
    "cp configuration/{{development,production}}-{0}.toml deployed/settings/",
    'echo "checked $(basename src/package/module{0}.py) in $PWD" >> logs/progress.log',
)
MANY_PARTS = "; ".join(MIXTURES[number % len(MIXTURES)].format(number) for number in range(128))


async def analysis_cost() -> list[Row]:
    commands = _one_liners()
    for command in commands:
        _seconds(command, repeats=1)
    times = [_seconds(command) for command in commands]
    p50, p99 = median(times), quantiles(times, n=100)[98]
    loaded = _loading()
    return [
        Row(name=f"analysing one of {len(commands)} one-liners, CPU", value=micros(p50), p50=p50, p99=p99,
            target="≤ 150 µs", met=p50 <= 150e-6),
        _long("… 10 KB in one long pattern", LONG),
        _long("… 10 KB in 700 words", WORDS),
        _long("… 5.5 KB in 301 commands", CHAIN),
        _long("… 10 KB, a file in a heredoc", HEREDOC),
        _long("… 11 KB in 300 commands that all differ (not known)", different(300)),
        _long("… 10 KB of patterns, variables, redirections and substitutions (not known)", MANY_PARTS),
        Row(name="… 4 KB in 108 commands that all differ", value=f"{_seconds(different(108)) * 1000:.2f} ms"),
        Row(name="… longer than 64 KB", value=micros(_seconds("a" * 70_000)), target="at once"),
        Row(name="loading the specifications", value=f"{loaded * 1000:.1f} ms", target="≤ 30 ms", met=loaded <= 0.03),
    ]  # fmt: skip


def _loading() -> float:
    """In a fresh process."""
    ran = subprocess.run([sys.executable, "-c", _LOADING], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def _long(name: str, command: str) -> Row:
    seconds = median(_seconds(command, repeats=1) for _ in range(2 * REPEATS + 1))
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
