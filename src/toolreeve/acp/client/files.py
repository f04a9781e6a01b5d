"""Serves `fs/read_text_file` and `fs/write_text_file` of an agent, through the road."""

import re
from collections.abc import Mapping
from typing import Any

from toolreeve.acp.client.road import Road
from toolreeve.core.errors import ErrorCode
from toolreeve.core.mcp import RpcError
from toolreeve.core.result import Failed
from toolreeve.rpc.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND

_NEXT = re.compile(r"(offset|byte)=(\d+)")
"""Where the next page begins, in the call that `read_file` names for it."""
MAX_READ = 16_000_000
"""Characters of one file that an agent may read at once."""


class FileService:
    """`missing` is "empty" for an agent that cannot tell a missing file from an error."""

    def __init__(self, road: Road, *, missing: str) -> None:
        self._road = road
        self._missing = missing

    async def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        args: dict[str, Any] = {"path": text(params, "path")}
        for name, given in (("offset", params.get("line")), ("limit", params.get("limit"))):
            if given is not None:
                args[name] = _whole(name, given)
        content = ""
        while len(content) <= MAX_READ:
            result = await self._road.call("read_file", args)
            if isinstance(result, Failed):
                return self._missed(result, args["path"])
            content += str(result.data.get("content", ""))
            following = _NEXT.findall(str(result.data.get("next", "")))
            if not following or "limit" in args:
                return {"content": content}
            args = {"path": args["path"], following[-1][0]: int(following[-1][1])}
        raise RpcError(INVALID_PARAMS, f"the file has more than {MAX_READ:,} characters: read it with line and limit")

    def _missed(self, result: Failed, path: str) -> dict[str, Any]:
        if result.error.code is not ErrorCode.FILE_NOT_FOUND:
            raise self._road.error(result)
        if self._missing == "empty":
            return {"content": ""}
        raise RpcError(RESOURCE_NOT_FOUND, "Resource not found", {"uri": path})

    async def write(self, params: Mapping[str, Any]) -> dict[str, Any]:
        args = {"path": text(params, "path"), "content": text(params, "content")}
        result = await self._road.call("write_file", args)
        if isinstance(result, Failed):
            raise self._road.error(result)
        return {}


def text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{name} must be a text")
    return value


def _whole(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise RpcError(INVALID_PARAMS, f"{name} must be a whole number of at least 0")
    return max(value, 1)
