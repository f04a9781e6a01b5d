"""Chain calls without async, in plan mode, which only permits reading."""

from pathlib import Path

from toolreeve import Toolreeve

Path("prices.txt").write_text("12\n30\n")

with Toolreeve.sync(mode="plan") as reeve:
    *_, total = reeve.chain(
        [
            {"tool": "search_files", "args": {"pattern": "price*.txt"}},
            {"tool": "read_file", "args": {"path": "{{previous.matches[0]}}"}},
            {"tool": "calculate", "args": {"expression": "{{previous.lines}} * 21"}},
        ]
    )
    print(total.output)  # → 42
    refused = reeve.call("write_file", path="prices.txt", content="0")
    print(refused.to_text())  # → Error [E_DENIED]: Plan mode: Only read-only tools allowed
