"""Return values of Python tools as Output.

Models, dataclasses, enumerations and dates become JSON; anything else that is not JSON is an error, never a guess.
"""

import dataclasses
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Failed, Output, Succeeded, Success

_RICH = (Enum, date, time, timedelta, Decimal, PurePath, UUID)


def as_output(returned: Any) -> Output:
    """A tool's return value as Output. Raises ToolError for a reported failure or a value that is not JSON."""
    match returned:
        case Output():
            return returned
        case Succeeded(outcome=Success(data, main)):
            return Output(data=data, main=main)
        case Failed(outcome=failure):
            raise ToolError(failure.code, failure.message, suggestions=failure.suggestions, detail=failure.detail)
        case None:
            return Output(data={})
    value = to_json(returned)
    if not isinstance(value, Mapping):
        output = Output(data={"output": value}, main=value)
    elif isinstance(returned, Mapping):
        output = _from_mapping(value)
    else:
        output = Output(data=value)
    _require_json(output.data)
    return output


def to_json(value: Any) -> Any:
    """The value with models, dataclasses, enumerations and dates in it as JSON; the rest as it is."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {_key(key): to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, _RICH) or hasattr(value, "__pydantic_serializer__") or dataclasses.is_dataclass(value):
        return _render(value)
    return value


def _key(key: Any) -> Any:
    return key if type(key) is str else to_json(key)


def _render(value: Any) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, by_alias=True)
    except (PydanticSerializationError, ValueError) as problem:
        raise _not_json(problem) from None


def _from_mapping(returned: Mapping[str, Any]) -> Output:
    if returned.get("success") is False and returned.get("error"):
        error = returned["error"]
        message = error.get("message", str(error)) if isinstance(error, Mapping) else str(error)
        raise ToolError(ErrorCode.TOOL_EXEC, message, detail=error if isinstance(error, Mapping) else None)
    return Output(data=returned, main=returned.get("output"))


def _require_json(data: Mapping[str, Any]) -> None:
    try:
        json.dumps(data)
    except TypeError as problem:
        raise _not_json(problem) from None


def _not_json(problem: Exception) -> ToolError:
    return ToolError(ErrorCode.TOOL_EXEC, f"the tool returned a value that is not JSON: {problem}")
