"""Attacks on `execute_command`: listed programs made to run others.

Nothing is run: each payload is checked as `execute_command` checks it. Programs whose purpose is to run a file of the
workspace do not count: the file is the caller's own, and the sandbox confines it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from bench.attacks.outcome import Tally
from toolreeve.core.argv import split
from toolreeve.core.call import Role
from toolreeve.core.command_settings import SHIPPED
from toolreeve.core.errors import ToolError
from toolreeve.policy.shell.allowlist import STARTED, refusal
from toolreeve.policy.shell.analysis import analyse_programs

RUNNING = frozenset(("shell", "command", "reverse-shell", "bind-shell", "library-load", "inherit"))
OWN_CODE = frozenset(("java", "javac", "gradle", "mvn", "dotnet", "make", "ninja", "pytest", "tox", "jest", "vitest"))
ROLE = Role.OPERATOR


async def run(corpora: Path | None) -> list[Tally]:
    tallies = [_attack("own", _own())]
    listed = corpora and corpora / "gtfobins.jsonl"
    if listed and listed.exists():
        tallies.append(_attack("gtfobins", _published(listed)))
    return tallies


def _own() -> Iterator[str]:
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line


def _published(path: Path) -> Iterator[str]:
    """The ways in which programs that we list are known to run others."""
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry["function"] in RUNNING and entry["binary"] in STARTED[ROLE] - OWN_CODE:
            yield entry["code"]


def _attack(name: str, payloads: Iterator[str]) -> Tally:
    tally = Tally(name=name)
    for payload in payloads:
        tally.payloads += 1
        tally.attempts += 1
        if _refused(payload):
            tally.refused += 1
        else:
            tally.escaped.append(payload)
    return tally


def _refused(command: str) -> bool:
    try:
        found = analyse_programs(split(command), cwd="/project", home="/home/me", root="/project")
    except ToolError:
        return True
    return refusal(found, ROLE, SHIPPED, root="/project") is not None
