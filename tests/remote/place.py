"""Servers to configure, and runtimes that use them: the light one in the tests' folder, told what to offer."""

import json
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
