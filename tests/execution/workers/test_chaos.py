"""Random kills of everything, bounded; `python -m bench.worker_chaos 200` does it for longer."""

from pathlib import Path

from bench.worker_chaos import run_chaos


def test_kills_of_everything_double_and_lose_nothing(tmp_path: Path) -> None:
    found = run_chaos(tmp_path, kills=8, seed=20, callers=16, pause=0.5)

    assert sum(found.kills.values()) == 8
    assert found.acknowledged > 40
    assert found.is_clean, found
