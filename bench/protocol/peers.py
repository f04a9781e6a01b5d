"""FastMCP for the comparison, in its own virtual environment, installed on first use."""

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
