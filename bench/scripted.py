"""Cost of a template: a YAML tool with three values against `bash -c true` from Python."""

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.measure import Row
from toolreeve import DangerLevel, Toolreeve, tool
from toolreeve.config import Settings, State, Workspace
from toolreeve.core.context import Context
from toolreeve.core.process import ProcessRequest

CALLS = 440
WARMING = 40
DECLARED = """
tools:
  rendered:
    danger: safe
    script: true {{name}} "{{text}}" '{{number}}'
    parameters: [{name: name}, {name: text}, {name: number, type: integer}]
"""
ARGUMENTS = {"name": "a b", "text": "$(id) " * 20, "number": 3}


@tool(danger=DangerLevel.SAFE)
async def plain(context: Context) -> None:
    """Run a script that does nothing, in the sandbox."""
    await context.processes.run(ProcessRequest(argv=("bash", "-c", "true"), directory=context.files.root))


async def _time(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def scripted() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "work").mkdir()
        (place / "tools.yaml").write_text(DECLARED)
        settings = Settings(
            workspace=Workspace(dir=str(place / "work")),
            state=State(dir=str(place / "state")),
            tool_files=(str(place / "tools.yaml"),),
        )
        async with Toolreeve(settings=settings, tools=[plain]) as reeve:
            if not (await reeve.call("rendered", ARGUMENTS)).success:
                raise RuntimeError("the tool in YAML does not run")
            pairs = [
                (await _time(lambda: reeve.call("plain")), await _time(lambda: reeve.call("rendered", ARGUMENTS)))
                for _ in range(CALLS)
            ][WARMING:]
    base, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    more = statistics.median(rendered - given for given, rendered in pairs)
    return [
        Row(name="`bash -c true` in the sandbox, by a tool in Python", value=f"{base * 1e3:.2f} ms", p50=base),
        Row(
            name="a rendered tool in YAML",
            value=f"+{more * 1e3:.2f} ms",
            ratio=ours / base,
            p50=ours,
            target="≤ +0.3 ms",
            met=more <= 0.0003,
        ),
    ]
