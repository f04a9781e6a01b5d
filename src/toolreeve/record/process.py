"""Runs a function in a Python process of its own.

Not `multiprocessing`: that would run the program which uses this library once more, to find its functions.
"""

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from toolreeve.core.errors import ErrorCode, ToolError

T = TypeVar("T")
_CHILD = "from toolreeve.record.process import main; main()"


def run_apart(function: Callable[..., T], *arguments: Any) -> T:
    """Blocks. Function, arguments and result are pickled. Raises what it raised."""
    command = [sys.executable, "-c", _CHILD]
    job = pickle.dumps((function, arguments))
    done = subprocess.run(command, input=job, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ToolError(ErrorCode.AUDIT_ERROR, f"a process that verifies has ended: {said[-1] if said else 'killed'}")
    succeeded, value = pickle.loads(done.stdout)  # noqa: S301 - of our own process
    if not succeeded:
        raise value
    return value  # type: ignore[no-any-return]


def main() -> None:
    function, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - of our own process
    try:
        answer = (True, function(*arguments))
    except Exception as problem:
        answer = (False, problem)
    sys.stdout.buffer.write(pickle.dumps(answer))
