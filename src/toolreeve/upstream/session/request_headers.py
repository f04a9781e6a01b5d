"""Headers of a request: what intermediaries route by, copied from its body.

Headers and body always agree: both are made from one request, and a value that a header cannot hold is encoded.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any

from toolreeve.core.mcp import Era
from toolreeve.upstream.session.header_params import InvalidHeaderParam, Path, read_header_params, value_at

VERSION = "mcp-protocol-version"
_METHOD = "mcp-method"
_NAME = "mcp-name"
_PARAM = "Mcp-Param-"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_ENCODED = re.compile(r"=\?base64\?.*\?=")


class RequestHeaders:
    """Builds the headers of requests; the header params of each tool's schema are read once."""

    def __init__(self) -> None:
        self._header_params: dict[str, tuple[Any, Mapping[Path, str]]] = {}

    def build(
        self, version: str, method: str, params: Mapping[str, Any] | None, schemas: Mapping[str, Any]
    ) -> dict[str, str]:
        """For a request or notification. `schemas` are the input schemas of the listed tools."""
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
        known, header_params = self._header_params.get(name, (None, {}))
        if known is not schema:
            header_params = {} if header_params_problem(schema) else read_header_params(schema)
            self._header_params[name] = (schema, header_params)
        if not header_params or not isinstance(arguments, Mapping):
            return {}
        headers: dict[str, str] = {}
        for path, header in header_params.items():
            value = _header_text(value_at(arguments, path))
            if value is not None:
                headers[_PARAM + header] = encode(value)
        return headers


def header_params_problem(schema: Any) -> str | None:
    """What is wrong with the header params of a schema. A tool with such a schema must not be called."""
    try:
        read_header_params(schema)
    except InvalidHeaderParam as problem:
        return str(problem)
    return None


def _header_text(value: Any) -> str | None:
    """None for a value that no header can hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, float)):
        return str(value)
    if isinstance(value, int) and value.bit_length() <= 64:
        return str(value)
    return None


def encode(value: str) -> str:
    """The value itself where a header can hold it and it does not look encoded; else base64."""
    if _PLAIN.fullmatch(value) and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="
