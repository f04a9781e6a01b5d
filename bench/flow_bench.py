"""What information flow costs: a plain call, a side effect, a question over 100 KB.

python bench/flow_bench.py
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # as a script, the package `bench` is one level up

from toolreeve.core.tool import ToolSpec
from toolreeve.policy.flow.authority import authority_of
from toolreeve.policy.flow.judge import FlowJudge
from toolreeve.policy.flow.memory import KeptResult, SessionMemory
from toolreeve.policy.flow.sources import source_of

SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in ("to", "subject", "body")}}
SEND = ToolSpec(name="send_mail", description="", input=SCHEMA, server="mail", trusted=False)
READ = ToolSpec(name="read_mail", description="", input={"type": "object"}, server="mail", trusted=False)


def microseconds(work: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.process_time_ns()
        for _ in range(times):
            work()
        best = min(best, (time.process_time_ns() - start) / times / 1000)
    return best


def main() -> None:
    source = source_of(READ)
    record = {"id": "7", "sender": "bob@x.org", "subject": "Report", "body": "words of a mail " * 25}
    sizes = {
        "100 bytes of text": "x" * 100,
        "1 MB of text": "x" * 1_000_000,
        "100 KB of records": {"mails": [record] * 220},
    }
    for name, raw in sizes.items():
        memory = SessionMemory()
        memory.say("Send bob@x.org a summary")
        cost = microseconds(lambda m=memory, r=raw: m.keep(_kept(source, r)), 200)  # type: ignore[misc]
        print(f"keep a result, {name}: {cost:.1f} µs")
    memory = SessionMemory()
    memory.say("Send bob@x.org a summary of my mails")
    memory.keep(_kept(source, {"mails": [record] * 220}))
    tool = authority_of(SEND)
    judge = FlowJudge(memory, lambda _: False)
    said = {"to": "bob@x.org", "subject": "hi", "body": "short text without links " * 8}
    print(f"side effect, all vouched for: {microseconds(lambda: judge.judge(tool, said), 2000):.1f} µs")
    print(f"first question over 100 KB: {_first_question(source, tool, record):.0f} µs")
    stranger = said | {"to": "eve@evil.example"}
    print(f"question again: {microseconds(lambda: judge.judge(tool, stranger), 50):.0f} µs")


def _kept(source: object, raw: object) -> KeptResult:
    return KeptResult("1", "read_mail", {"q": "x"}, raw, source, own=False, at=0.0)  # type: ignore[arg-type]


def _first_question(source: object, tool: object, record: object) -> float:
    best = float("inf")
    for _ in range(7):
        memory = SessionMemory()
        memory.say("Send bob@x.org a summary of my mails")
        memory.keep(_kept(source, json.loads(json.dumps({"mails": [record] * 220}))))
        judge = FlowJudge(memory, lambda _: False)
        args = {"to": "eve@evil.example", "subject": "hi", "body": "text"}
        start = time.process_time_ns()
        judge.judge(tool, args)  # type: ignore[arg-type]
        best = min(best, (time.process_time_ns() - start) / 1000)
    return best


if __name__ == "__main__":
    main()
