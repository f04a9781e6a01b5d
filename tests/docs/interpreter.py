"""A Python process that runs the blocks of one page in order, each within a deadline."""

import json
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.docs.blocks import Block

DEADLINE = 60.0
RUNNER = Path(__file__).with_name("python_runner.py")


class Interpreter:
    def __init__(self, workspace: Path, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", RUNNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=workspace,
            env=dict(environ),
        )

    def run(self, block: Block, name: str) -> tuple[str, str]:
        """What the block printed, and the traceback of its exception, if any."""
        message = {"source": block.text, "name": name, "line": block.line, "fresh": block.fresh}
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the interpreter has no pipes")
        print(json.dumps(message), file=self._process.stdin, flush=True)
        ready, _, _ = select.select([self._process.stdout], [], [], DEADLINE)
        if not ready:
            return "", f"the block did not end within {DEADLINE:g} s"
        answer = json.loads(self._process.stdout.readline())
        return answer["output"], answer["problem"]

    def close(self) -> None:
        try:
            self._process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
