"""A server made with the official library, on its input and output, that speaks both eras and uses all it may."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[Any]
QUESTION = types.ElicitRequestFormParams(
    message="Which colour?", requested_schema={"type": "object", "properties": {"colour": {"type": "string"}}}
)
WANTED = {
    "type": "object",
    "properties": {"text": {"$ref": "#/$defs/Text"}},
    "$defs": {"Text": {"type": "string", "minLength": 1}},
}


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def _echo(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    return _text(str((params.arguments or {}).get("text")))


async def _picture(_: Context, __: types.CallToolRequestParams) -> types.CallToolResult:
    image = types.ImageContent(data="aGVsbG8=", mime_type="image/png")
    return types.CallToolResult(content=[image], structured_content={"deep": {"er": [1, None, "é"]}})


async def _steps(ctx: Context, _: types.CallToolRequestParams) -> types.CallToolResult:
    for step in range(3):
        await ctx.session.report_progress(step, 3, f"step {step}")
    return _text("stepped")


async def _log(ctx: Context, _: types.CallToolRequestParams) -> types.CallToolResult:
    await ctx.session.send_log_message("debug", "small")
    await ctx.session.send_log_message("warning", "great")
    return _text("logged")


async def _ask(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    if ctx.session.can_send_request:
        answer = await ctx.session.elicit_form(QUESTION.message, QUESTION.requested_schema)
        return _text(f"{answer.action} {answer.content}")
    if params.input_responses is None:
        asked: dict[str, types.InputRequest] = {"colour": types.ElicitRequest(params=QUESTION)}
        return types.InputRequiredResult(input_requests=asked, request_state="halfway")
    answers = {name: answer.model_dump(mode="json") for name, answer in params.input_responses.items()}
    return _text(f"{params.request_state} {answers['colour']['content']}")


async def _roots(ctx: Context, _: types.CallToolRequestParams) -> types.CallToolResult:
    return _text(" ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots))


async def _wait(_: Context, __: types.CallToolRequestParams) -> types.CallToolResult:
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()
    return _text("never")


async def _stopped(_: Context, __: types.CallToolRequestParams) -> types.CallToolResult:
    await asyncio.wait_for(stopped.wait(), 10)
    return _text("it was told to stop")


Work = Callable[[Context, types.CallToolRequestParams], Awaitable[types.CallToolResult | types.InputRequiredResult]]
stopped = asyncio.Event()
TOOLS: dict[str, Work] = {
    "echo": _echo,
    "picture": _picture,
    "steps": _steps,
    "log": _log,
    "ask": _ask,
    "roots": _roots,
    "wait": _wait,
    "stopped": _stopped,
}


async def _list(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=WANTED) for name in TOOLS])


async def _call(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    return await TOOLS[params.name](ctx, params)


async def main() -> None:
    server: Server[Any] = Server(
        "official", version="1.2.3", instructions="Ask politely.", on_list_tools=_list, on_call_tool=_call
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
