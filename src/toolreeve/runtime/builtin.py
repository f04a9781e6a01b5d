"""The builtin tools, and the documented registry class of `BUILTIN_TOOLS`.

`BUILTIN_TOOLS.get("read_file")["func"](…)` takes the same road as every other call, through a runtime for the current
directory that starts on first use.
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from toolreeve.core.result import ToolResult
from toolreeve.core.tool import AnyFunctionTool, BoundTool
from toolreeve.policy.known_tools import CONFINABLE, UNDOABLE
from toolreeve.registry import ToolRegistry
from toolreeve.tools.edit import EDIT_TOOLS
from toolreeve.tools.files import READ_TOOLS
from toolreeve.tools.http import HTTP_TOOLS
from toolreeve.tools.output_schemas import OUTPUT_SCHEMAS
from toolreeve.tools.quality import QUALITY_TOOLS
from toolreeve.tools.repository import REPOSITORY_TOOLS
from toolreeve.tools.search import SEARCH_TOOLS
from toolreeve.tools.shell import SHELL_TOOLS
from toolreeve.tools.system import SYSTEM_TOOLS
from toolreeve.tools.undo import read_output, undo
from toolreeve.tools.web import WEB_TOOLS

FILE_TOOLS: tuple[AnyFunctionTool, ...] = (*READ_TOOLS, *EDIT_TOOLS, *SEARCH_TOOLS)
_ALL: tuple[AnyFunctionTool, ...] = (
    *FILE_TOOLS,
    undo,
    read_output,
    *HTTP_TOOLS,
    *WEB_TOOLS,
    *SYSTEM_TOOLS,
    *SHELL_TOOLS,
    *REPOSITORY_TOOLS,
    *QUALITY_TOOLS,
)
TOOLS: tuple[AnyFunctionTool, ...] = tuple(
    replace(
        each,
        spec=replace(
            each.spec,
            output=OUTPUT_SCHEMAS[each.name],
            undoable=each.name in UNDOABLE,
            confinable=each.name in CONFINABLE,
        ),
    )
    for each in _ALL
)


class ResultDict(dict[str, Any]):
    """A result as a dictionary. It can also be awaited, as the documentation does with slow tools."""

    def __await__(self) -> Generator[Any, Any, "ResultDict"]:
        return self
        yield


class DocumentedTool(dict[str, Any]):
    """A tool's metadata, and `func` to call it with positional or keyword arguments."""

    def __init__(self, bound: BoundTool, call: Callable[[BoundTool, dict[str, Any]], ToolResult]) -> None:
        spec = bound.spec
        names = list(spec.input["properties"])

        def func(*args: Any, **kwargs: Any) -> ResultDict:
            if len(args) > len(names):
                raise TypeError(f"{spec.name} takes at most {len(names)} arguments, got {len(args)}")
            given = dict(zip(names, args, strict=False))
            if twice := given.keys() & kwargs.keys():
                raise TypeError(f"{spec.name} got {', '.join(sorted(twice))} twice")
            return ResultDict(call(bound, given | kwargs).to_dict())

        super().__init__(
            name=spec.name,
            description=spec.description,
            category=spec.category,
            danger_level=spec.danger,
            parameters=spec.input["properties"],
            func=func,
        )


class BuiltinTools(ToolRegistry):
    """The registry of the builtin tools. `get` returns a tool in its documented form. `approve` answers the questions
    about its calls: a function of the request, as for `Toolreeve`."""

    approve: Callable[[Any], Any] | None = None

    def __init__(self, call: Callable[[BoundTool, dict[str, Any]], ToolResult]) -> None:
        super().__init__(TOOLS)
        self._call = call

    def get(self, name: str) -> Any:
        bound = super().get(name)
        return None if bound is None else DocumentedTool(bound, self._call)
