"""The generated references are up to date."""

import subprocess
import sys

from tests.docs.page import ROOT


def test_the_references_are_what_the_generator_writes_now() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )

    assert done.stdout + done.stderr == "", "run `make docs`"
    assert done.returncode == 0
