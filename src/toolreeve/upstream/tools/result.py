"""Turns a server's results and errors into `Output` and `ToolError`.

The raw result is kept as it came, next to what is read from it.
"""

from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.upstream.tools.output_schema import OutputSchema
from toolreeve.upstream.transports.transport import RemoteError

MAX_MESSAGE_TEXT = 16_000
MISMATCH = "output_schema"


def read_call(result: dict[str, Any], labels: tuple[str, ...], schema: OutputSchema | None = None) -> Output:
    """The result of `tools/call`; `schema` is the tool's output schema. Raises ToolError for a failure that the tool
    reports."""
    content = result.get("content")
    if result.get("isError") is True:
        raise ToolError(
            ErrorCode.TOOL_EXEC,
            _cut(text_of(content)) or "the tool failed without giving a reason",
            meta={"raw": result, "labels": labels},
        )
    if result.get("resultType") == "input_required":
        return _input_required(result, labels)
    structured = result.get("structuredContent")
    data = structured
    if not isinstance(data, dict):
        data = {"content": content if isinstance(content, list) else []}
    output = Output(data=data, main=text_of(content) or None, raw=result, labels=labels)
    if schema is not None and (remark := schema.mismatch(structured)):
        output.diagnostics = {MISMATCH: remark}
    return output


def read_other(result: dict[str, Any], labels: tuple[str, ...]) -> Output:
    """The result of any other request."""
    if result.get("resultType") == "input_required":
        return _input_required(result, labels)
    return Output(data=result, raw=result, labels=labels)


def _input_required(result: dict[str, Any], labels: tuple[str, ...]) -> Output:
    return Output(data={"status": "input_required"}, raw=result, labels=labels)


def failure_of(problem: RemoteError, server: str) -> ToolError:
    """Carries the server's own error, so that an MCP client can get it unchanged."""
    message = f"{server}: {_cut(problem.message)}"
    return ToolError(ErrorCode.UPSTREAM, message, detail={"jsonrpc": problem.to_dict()}, retryable=False)


def text_of(content: Any) -> str:
    if not isinstance(content, list):
        return ""
    if len(content) == 1:
        return _text(content[0])
    return "\n".join(filter(None, map(_text, content)))


def _text(block: Any) -> str:
    if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
        text: str = block["text"]
        return text
    return ""


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_TEXT else f"{text[:MAX_MESSAGE_TEXT]}… ({len(text)} characters)"
