"""Where is FastMCP to compare with? In a virtual environment of its own, made when it is first needed."""

import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).parent.parent.parent / ".peers" / "fastmcp"


def fastmcp_python() -> str:
    python = PLACE / "bin" / "python"
    stamp = PLACE / ".ready"
    if not stamp.exists():
        print("… installing fastmcp to compare with", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", PLACE], check=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, "fastmcp>=4,<5", "uvicorn[standard]"], check=True)
        stamp.touch()
    return str(python)
