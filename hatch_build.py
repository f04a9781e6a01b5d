"""Build hook: compile the specifications of programs into the wheel and for editable installs."""

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE = Path("src/toolreeve/policy/shell/programs/compile.py")


class CompilePrograms(BuildHookInterface):  # type: ignore[type-arg]  # the configuration has no type of its own
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # the hook's interface
        spec = importlib.util.spec_from_file_location("compile_programs", Path(self.root) / COMPILE)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"{COMPILE} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.write()
