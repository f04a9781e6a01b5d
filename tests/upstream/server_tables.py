"""Configuration tables of the light test server."""

import json
import os
import sys
from pathlib import Path
from typing import Any

SERVERS = Path(__file__).parent / "servers"
LIGHT = str(SERVERS / "light.py")


def light(told: dict[str, Any] | None = None, **configured: Any) -> dict[str, Any]:
    """A table for the light server; `told` is what it offers."""
    return {"command": sys.executable, "args": ["-I", "-S", LIGHT, json.dumps(told or {})], **configured}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}, **more}


def from_file(path: Path, offer: dict[str, Any], **configured: Any) -> dict[str, Any]:
    """A server that offers what stands in a file, which a test may rewrite."""
    path.write_text(json.dumps(offer))
    return light({"file": str(path)}, **configured)


def descendants() -> set[int]:
    """All processes that we, or those that we started, have started."""
    found, parents = set[int](), {os.getpid()}
    while parents:
        parents = {child for parent in parents for child in _children(parent)}
        found |= parents
    return found


def _children(parent: int) -> set[int]:
    try:
        tasks = list(Path(f"/proc/{parent}/task").iterdir())
        return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
    except OSError:
        return set()
