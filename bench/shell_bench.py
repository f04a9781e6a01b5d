"""How long does it take to know what a command would do?

    python -m bench.shell_bench [CORPORA]

CPU time: of each one-liner of a corpus, of a long command, and of loading the specifications.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles

from toolreeve.policy.shell.analysis import analyse

_LOADING = """
import time
from toolreeve.policy.shell import specs
start = time.process_time()
specs.program("cat")
print(time.process_time() - start)
"""


def _micros(command: str, repeats: int = 5) -> float:
    start = time.process_time_ns()
    for _ in range(repeats):
        analyse(command, cwd="/work", home="/home/me", root="/work")
    return (time.process_time_ns() - start) / repeats / 1000


def measure(corpora: Path) -> dict[str, float]:
    with (corpora / "benign_nl2bash.jsonl").open() as lines:
        commands = [json.loads(line)["cmd"] for line in lines]
    for command in commands:
        analyse(command, cwd="/work", home="/home/me", root="/work")
    times = [_micros(command) for command in commands]
    long = "grep -n '" + "some pattern|" * 740 + "' src/file.py | sort -u && ls"
    words = "cat " + " ".join(f"src/file{number}.py" for number in range(700))
    chain = "grep -n foo src/file.py | sort -u && " * 150 + "ls"
    loading = subprocess.run([sys.executable, "-c", _LOADING], capture_output=True, text=True, check=True)
    return {
        "nl2bash_p50_us": round(median(times), 1),
        "nl2bash_p99_us": round(quantiles(times, n=100)[98], 1),
        "long_command_bytes": len(long),
        "long_command_us": round(_micros(long), 1),
        "many_words_bytes": len(words),
        "many_words_us": round(_micros(words), 1),
        "many_commands_bytes": len(chain),
        "many_commands_us": round(_micros(chain), 1),
        "too_long_us": round(_micros("a" * 70_000), 1),
        "load_specifications_ms": round(float(loading.stdout) * 1000, 2),
    }


def main() -> int:
    results = measure(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/corpora"))
    for name, value in results.items():
        print(f"{name:28} {value:>12}")
    (Path(__file__).parent / "shell_bench.json").write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
