"""Runs the public conformance suite and reads its summary.

Nothing is excused here: there is no list of failures to expect. What the suite itself does not score for a revision
(extensions, scenarios that its own reference cannot pass) is left out of the counts.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers"
SUITE = PEERS / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
NODE = PEERS / "node/bin/node"
REVISIONS = ("2025-11-25", "2026-07-28")
DEADLINE = 240

_SUMMARY = re.compile(r"^=== (?:SUITE )?SUMMARY ===$", re.MULTILINE)
_LINE = re.compile(r"^([✓✗]) (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
_NOT_SCORED = re.compile(r"^  [✓✗] (\S+) \(", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`scored` says of each required scenario whether it passed; `warned` names those that should do more, though they
    need not. `printed` is all that the suite said."""

    status: int
    scored: Mapping[str, bool]
    printed: str
    warned: Sequence[str] = ()

    @property
    def failed(self) -> list[str]:
        return [name for name, passed in self.scored.items() if not passed]

    @property
    def counts(self) -> tuple[int, int]:
        """How many required scenarios passed, of how many."""
        return len(self.scored) - len(self.failed), len(self.scored)


def fetch_peers() -> Path:
    """The folder with the programs of others; fetched on first use."""
    subprocess.run([ROOT / ".ci/peers"], check=True, timeout=900)
    return PEERS


def check_server(url: str, revision: str, place: Path) -> Report:
    kept = place / "results"
    report = _run(place, "server", "--url", url, "--requirements", revision, "--output-dir", str(kept))
    return replace(report, warned=[name for name in report.scored if "WARNING" in _statuses(kept, name)])


def check_client(command: str, revision: str, place: Path) -> Report:
    """The suite starts the clients of all scenarios at once: each gets its time however busy the machine is."""
    patience = str(DEADLINE * 1000 // 2)
    return _run(place, "client", "--command", command, "--requirements", revision, "--timeout", patience)


def _run(place: Path, *arguments: str) -> Report:
    done = subprocess.run(
        [NODE, SUITE, *arguments], cwd=place, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL
    )
    return read(done.returncode, done.stdout + done.stderr)


def _statuses(kept: Path, scenario: str) -> set[str]:
    (path,) = kept.glob(f"server-{scenario}-20*/checks.json")
    return {check["status"] for check in json.loads(path.read_text())}


def read(status: int, printed: str) -> Report:
    summary = _SUMMARY.split(printed)[-1]
    results, _, rest = summary.partition("Not scored for")
    unscored = set(_NOT_SCORED.findall(rest))
    scored = {name: mark == "✓" for mark, name, _, _ in _LINE.findall(results) if name not in unscored}
    return Report(status=status, scored=scored, printed=printed)
