"""Random commands that could make a file: what would run unasked is run, and the file must not appear."""

import random
import subprocess
from pathlib import Path

from tests.policy.shell.test_properties import FRAGMENTS
from tests.policy.shell.workspace import runs_unasked

HOSTILE = [
    "touch ./M",
    "$(touch ./M)",
    "`touch ./M`",
    "<(touch ./M)",
    "'touch' ./M",
    '"$(touch ./M)"',
    "${z:-`touch ./M`}",
    "<<'E'\n$(touch ./M)\nE\n",
    "<<E\n$(touch ./M)\nE\n",
    "x='a[$(touch ./M)]'",
    "y=(1 $(touch ./M))",
    "$((x))",
    "[[ x -eq 1 ]]",
    "${y[x]}",
    "eval",
    "\\$(touch ./M)",
    "#",
    ">M",
    "&>M",
    ">|M",
    "'",
    '"',
]


def test_nothing_that_runs_unasked_makes_the_file(tmp_path: Path) -> None:
    chance = random.Random(7)
    parts = FRAGMENTS + HOSTILE
    ran = 0
    for _ in range(8000):
        command = "".join(chance.choice(parts) + chance.choice(["", " ", " "]) for _ in range(chance.randint(1, 7)))
        if "M" not in command or not runs_unasked(command):
            continue
        ran += 1
        subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert not (tmp_path / "M").exists(), command
    assert ran > 20
