"""What must stand in the headers of a request? What intermediaries route by, copied from its body.

Headers and body always say the same: both are made of one request, and a value that a header cannot hold is encoded.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any

from toolreeve.core.mcp import Era
from toolreeve.upstream.session.header_params import Path, WrongMark, read_marks, value_at

VERSION = "mcp-protocol-version"
_METHOD = "mcp-method"
_NAME = "mcp-name"
_ARGUMENT = "Mcp-Param-"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_ENCODED = re.compile(r"=\?base64\?.*\?=")


class Router:
    """What the marks of each tool's schema are is found out once."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[Any, Mapping[Path, str]]] = {}

    def headers(
        self, version: str, method: str, params: Mapping[str, Any] | None, schemas: Mapping[str, Any]
    ) -> dict[str, str]:
        """Those of a request or notification. `schemas` are the input schemas of the tools that were listed."""
        if version != Era.MODERN:
            return {VERSION: version}
        found = {VERSION: version, _METHOD: method}
        name = (params or {}).get(_NAMED_BY.get(method, ""))
        if isinstance(name, str):
            found[_NAME] = encode(name)
            if method == "tools/call" and name in schemas:
                found |= self._of_arguments(name, schemas[name], (params or {}).get("arguments"))
        return found

    def _of_arguments(self, name: str, schema: Any, arguments: Any) -> dict[str, str]:
        held, marks = self._marks.get(name, (None, {}))
        if held is not schema:
            marks = {} if wrong_mark(schema) else read_marks(schema)
            self._marks[name] = (schema, marks)
        if not marks or not isinstance(arguments, Mapping):
            return {}
        spelled = ((header, _spelled(value_at(arguments, path))) for path, header in marks.items())
        return {_ARGUMENT + header: encode(value) for header, value in spelled if value is not None}


def wrong_mark(schema: Any) -> str | None:
    """What is wrong with the arguments that a schema marks to stand in headers. Such a tool is not to be called."""
    try:
        read_marks(schema)
    except WrongMark as problem:
        return str(problem)
    return None


def _spelled(value: Any) -> str | None:
    """None where there is nothing that a header could say."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, float)):
        return str(value)
    return str(value) if isinstance(value, int) and value.bit_length() <= 64 else None


def encode(value: str) -> str:
    """As it is where a header can hold it and nobody could take it for encoded; else in base64."""
    if _PLAIN.fullmatch(value) and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="
