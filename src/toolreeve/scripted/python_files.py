"""Tools of a Python file: its `@tool` functions, and `TOOLS`.

Loading the file runs it: the caller must have made sure that a person trusts it.
"""

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.core.tool import AnyFunctionTool, BoundTool, FunctionTool, bind


def load_tools(path: Path) -> Sequence[BoundTool]:
    """The tools of a file, in source order. Raises ConfigError."""
    module = _run(path)
    listed = getattr(module, "TOOLS", ())
    own = [each for each in vars(module).values() if isinstance(each, FunctionTool) and _is_from(each, module)]
    tools = [_bind(candidate, path) for candidate in {id(each): each for each in (*own, *listed)}.values()]
    if not tools:
        raise ConfigError("contains no tools", source=path, fix="put @tool above the functions that are tools")
    return tools


def _run(path: Path) -> ModuleType:
    name = f"toolreeve_file_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError("is not a Python file", source=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        del sys.modules[name]
        raise ConfigError(
            f"cannot be loaded: {type(problem).__name__}: {problem}", source=path, line=_line(problem, path)
        ) from problem
    return module


def _line(problem: Exception, path: Path) -> int | None:
    """The line of the file that failed, deepest frame first."""
    if isinstance(problem, SyntaxError):
        return problem.lineno
    frames = traceback.extract_tb(problem.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)


def _is_from(candidate: AnyFunctionTool, module: ModuleType) -> bool:
    return candidate.function.__module__ == module.__name__


def _bind(candidate: Any, path: Path) -> BoundTool:
    try:
        bound = bind(candidate)
    except ToolreeveError as problem:
        raise ConfigError(str(problem), source=path, key="TOOLS") from None
    return replace(bound, spec=replace(bound.spec, source=str(path)))
