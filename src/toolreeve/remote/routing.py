"""What must stand in the headers of a request? What intermediaries route by, copied from its body.

The names and the coding of values are the SDK's, which is imported only where a line has headers at all.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from toolreeve.core.peer import Era

VERSION = "mcp-protocol-version"
_METHOD = "mcp-method"
_NAME = "mcp-name"
_MARK = b'"x-mcp-header"'


def headers(
    version: str, method: str, params: Mapping[str, Any] | None, schemas: Mapping[str, Any]
) -> Mapping[str, str]:
    """Those of a request or notification. `schemas` are the input schemas of the tools that were listed."""
    if version != Era.MODERN:
        return {VERSION: version}
    from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value

    found = {VERSION: version, _METHOD: method}
    named = NAME_BEARING_METHODS.get(method)
    name = None if named is None or params is None else params.get(named)
    if isinstance(name, str):
        found[_NAME] = encode_header_value(name)
        if params is not None and method == "tools/call" and name in schemas:
            found.update(_from_arguments(schemas[name], params.get("arguments")))
    return found


def wrong_mark(schema: Any) -> str | None:
    """What is wrong with the arguments that a schema marks to stand in headers. Such a tool is not to be called."""
    if _MARK not in orjson.dumps(schema):
        return None
    from mcp.shared.inbound import find_invalid_x_mcp_header

    return find_invalid_x_mcp_header(schema)


def _from_arguments(schema: Any, arguments: Any) -> dict[str, str]:
    """Of a schema whose marks are not valid, none count."""
    from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

    if not isinstance(arguments, Mapping) or find_invalid_x_mcp_header(schema) is not None:
        return {}
    return mcp_param_headers(x_mcp_header_map(schema), arguments)
