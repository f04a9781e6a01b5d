"""Runs the Python blocks of a page; top-level `await` is allowed, names stay defined.

Per block, one JSON line comes in, {"source", "name", "line", "fresh"}; one goes out, {"output", "problem"}.
"""

import ast
import asyncio
import contextlib
import io
import json
import os
import sys
import traceback
from typing import Any


def run_block(runner: asyncio.Runner, names: dict[str, Any], block: dict[str, Any]) -> dict[str, str]:
    output = io.StringIO()
    problem = ""
    if block["fresh"]:
        names.clear()
    names["__name__"] = "__main__"
    with contextlib.redirect_stdout(output):
        try:
            _execute(runner, names, block)
        except Exception:
            problem = traceback.format_exc()
    return {"output": output.getvalue(), "problem": problem}


def _execute(runner: asyncio.Runner, names: dict[str, Any], block: dict[str, Any]) -> None:
    source = "\n" * (block["line"] - 1) + block["source"]
    code = compile(source, block["name"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    pending = eval(code, names)
    if pending is not None:
        runner.run(pending)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    names: dict[str, Any] = {}
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            print(json.dumps(run_block(runner, names, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
