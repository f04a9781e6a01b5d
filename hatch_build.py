"""Build hook: compile the specifications of programs, and build the web console, into the wheel."""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE = Path("src/toolreeve/policy/shell/programs/compile.py")
CONSOLE = Path("src/toolreeve/console/index.html")
NO_CONSOLE = "the web console is not built, and npm is not here to build it; run `make web` first"


class BuildFiles(BuildHookInterface):  # type: ignore[type-arg]  # the configuration has no type of its own
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # the hook's interface
        self._compile_programs()
        if version != "editable" and not (Path(self.root) / CONSOLE).exists():
            self._build_console()

    def _compile_programs(self) -> None:
        spec = importlib.util.spec_from_file_location("compile_programs", Path(self.root) / COMPILE)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"{COMPILE} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.write()

    def _build_console(self) -> None:
        """Users need no Node: what they install was built before."""
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError(NO_CONSOLE)
        for step in (("install", "--no-save", "--no-audit", "--no-fund"), ("run", "build")):
            subprocess.run([npm, *step], cwd=Path(self.root) / "web", check=True)
