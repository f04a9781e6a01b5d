"""Approvals under kill -9, and under answers, cancels, timeouts and restarts in random order."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def drive(kind: str, count: int, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.approval.crash_driver", kind, str(count), str(folder)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert printed.returncode == 0, printed.stderr[-2000:]
    summary: dict[str, Any] = json.loads(printed.stdout.splitlines()[-1])
    return summary


def test_a_caller_killed_at_a_random_point_runs_its_call_at_most_once_and_only_with_an_answer(
    state_folder: Path,
) -> None:
    found = drive("kill", 200, state_folder)

    assert found["most_runs"] == 1
    assert found["ran_without_answer"] == []
    assert found["ran"] > 10, "some answers came before the kill, or were used after the restart"
    assert sum(found["states"].values()) > 100, found
    assert set(found["states"]) <= {"pending", "allowed", "denied", "used", "expired", "withdrawn"}
    assert found["chain"] is True


def test_no_interleaving_runs_a_call_twice_without_an_answer_or_leaves_a_question_open(state_folder: Path) -> None:
    found = drive("mix", 1000, state_folder)

    assert found["most_runs"] == 1
    assert found["ran_without_answer"] == []
    assert found["ran"] > 50
    assert "pending" not in found["states"], "every call has ended, so every question has"
    assert found["chain"] is True
