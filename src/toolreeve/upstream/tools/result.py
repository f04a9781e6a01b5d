"""What does a server's answer mean on our road? The answer itself is kept as it came, beside what is read from it."""

from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.upstream.tools.output_schema import OutputSchema
from toolreeve.upstream.transports.transport import RemoteError

UNTRUSTED = ("untrusted",)
LONGEST_MESSAGE = 16_000
BROKEN = "output_schema"


def read_call(result: dict[str, Any], labels: tuple[str, ...], promised: OutputSchema | None = None) -> Output:
    """The answer to `tools/call`; `promised` is what the tool said it would answer. Raises ToolError for a failure that
    the tool reports."""
    content = result.get("content")
    if result.get("isError") is True:
        raise ToolError(
            ErrorCode.TOOL_EXEC,
            _cut(text_of(content)) or "the tool failed without saying why",
            meta={"raw": result, "labels": labels},
        )
    if result.get("resultType") == "input_required":
        return asked_back(result, labels)
    structured = result.get("structuredContent")
    data = structured if isinstance(structured, dict) else {"content": content if isinstance(content, list) else []}
    output = Output(data=data, main=text_of(content) or None, raw=result, labels=labels)
    if promised is not None and (remark := promised.broken_by(structured)):
        output.diagnostics = {BROKEN: remark}
    return output


def read_other(result: dict[str, Any], labels: tuple[str, ...]) -> Output:
    """The answer to any other request."""
    if result.get("resultType") == "input_required":
        return asked_back(result, labels)
    return Output(data=result, raw=result, labels=labels)


def asked_back(result: dict[str, Any], labels: tuple[str, ...]) -> Output:
    return Output(data={"status": "input_required"}, raw=result, labels=labels)


def failure_of(problem: RemoteError, server: str) -> ToolError:
    """The server's own error, for whoever can pass it on as it is."""
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
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}… ({len(text)} characters)"
