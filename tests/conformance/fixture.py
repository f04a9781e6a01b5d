"""A server with everything in it that the conformance scenarios ask for. Runs as `stdio` or as `http PORT`.

Answers are plain dictionaries in MCP's own shape, so that what comes out of a gateway in front can be compared with
what went in. A tool that wants to know something first answers `input_required`, with a state that it signs.
"""

import hashlib
import hmac
import json
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types.methods import CACHEABLE_METHODS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]
Arguments = Mapping[str, Any]
Answer = dict[str, Any]
Act = Callable[[Context, Arguments], Awaitable[Answer]]

KEY = b"only the fixture signs with this"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
BEEP = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=="
STREET = {"street": {"type": "string"}, "city": {"type": "string"}}
ADDRESSES = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": STREET}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

tools: dict[str, tuple[types.Tool, Act]] = {}
prompts: dict[str, tuple[types.Prompt, Act]] = {}
bus = InMemorySubscriptionBus()


def tool(
    name: str, *, takes: Mapping[str, Any] | None = None, schema: dict[str, Any] | None = None
) -> Callable[[Act], Act]:
    def keep(act: Act) -> Act:
        shape = schema or {"type": "object", "properties": dict(takes or {}), "required": [*(takes or {})]}
        tools[name] = types.Tool(name=name, description=f"What the scenario {name} asks for.", input_schema=shape), act
        return act

    return keep


def prompt(name: str, *takes: str) -> Callable[[Act], Act]:
    def keep(act: Act) -> Act:
        arguments = [types.PromptArgument(name=each, required=True) for each in takes]
        prompts[name] = (
            types.Prompt(name=name, description=f"What the scenario {name} asks for.", arguments=arguments),
            act,
        )
        return act

    return keep


def text(said: str) -> Answer:
    return {"type": "text", "text": said}


def image() -> Answer:
    return {"type": "image", "data": DOT, "mimeType": "image/png"}


def embedded(uri: str, said: str, kind: str = "text/plain") -> Answer:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


def content(*blocks: Answer, failed: bool = False) -> Answer:
    return {"content": list(blocks), "isError": failed}


def messages(*blocks: Answer) -> Answer:
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


@tool("test_simple_text")
async def say(_: Context, __: Arguments) -> Answer:
    return content(text("This is a simple text response for testing."))


@tool("test_image_content")
async def show(_: Context, __: Arguments) -> Answer:
    return content(image())


@tool("test_audio_content")
async def sound(_: Context, __: Arguments) -> Answer:
    return content({"type": "audio", "data": BEEP, "mimeType": "audio/wav"})


@tool("test_embedded_resource")
async def embed(_: Context, __: Arguments) -> Answer:
    return content(embedded("test://embedded-resource", "This is an embedded resource content."))


@tool("test_multiple_content_types")
async def mix(_: Context, __: Arguments) -> Answer:
    more = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return content(text("Multiple content types test:"), image(), more)


@tool("test_error_handling")
async def fail(_: Context, __: Arguments) -> Answer:
    return content(text("This tool intentionally returns an error for testing"), failed=True)


@tool("json_schema_2020_12_tool", schema=ADDRESSES)
async def address(_: Context, arguments: Arguments) -> Answer:
    return content(text(json.dumps(dict(arguments))))


@tool("test_x_mcp_header", takes={"region": {"type": "string", "x-mcp-header": "Region"}})
async def region(_: Context, arguments: Arguments) -> Answer:
    return content(text(f"region {arguments['region']}"))


@tool("test_tool_with_logging")
async def log_thrice(context: Context, _: Arguments) -> Answer:
    for step in ("started", "processing", "completed"):
        await log(context, f"Tool execution {step}")
    return content(text("logged three times"))


@tool("test_logging_tool")
async def log_once(context: Context, _: Arguments) -> Answer:
    await log(context, "a line for those who asked for it")
    return content(text("logged once"))


async def log(context: Context, line: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await context.session.send_log_message("info", line, related_request_id=context.request_id)


@tool("test_tool_with_progress")
async def progress(context: Context, _: Arguments) -> Answer:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"Completed step {done} of 100")
    return content(text("all steps completed"))


@tool("test_sampling", takes={"prompt": {"type": "string"}})
async def sample(context: Context, arguments: Arguments) -> Answer:
    question = types.SamplingMessage(role="user", content=types.TextContent(text=arguments["prompt"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        answer = await context.session.create_message([question], max_tokens=100, related_request_id=context.request_id)
    return content(text(f"LLM response: {getattr(answer.content, 'text', 'no text')}"))


async def elicit(context: Context, message: str, properties: dict[str, Any]) -> Answer:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    answer = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
    return content(text(f"User response: action={answer.action}, content={json.dumps(answer.content)}"))


@tool("test_elicitation", takes={"message": {"type": "string"}})
async def elicit_word(context: Context, arguments: Arguments) -> Answer:
    return await elicit(context, arguments["message"], {"response": {"type": "string", "description": "Your answer"}})


@tool("test_elicitation_sep1034_defaults")
async def elicit_with_defaults(context: Context, _: Arguments) -> Answer:
    return await elicit(
        context,
        "Who are you?",
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    )


def titled(**titles: str) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in titles.items()]


@tool("test_elicitation_sep1330_enums")
async def elicit_choices(context: Context, _: Arguments) -> Answer:
    return await elicit(
        context,
        "Which of these?",
        {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": titled(value1="First", value2="Second", value3="Third")},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {
                "type": "array",
                "items": {"anyOf": titled(value1="First", value2="Second", value3="Third")},
            },
        },
    )


@tool("test_missing_capability")
async def need_sampling(context: Context, _: Arguments) -> Answer:
    declared = context.session.client_capabilities
    if declared is None or declared.sampling is None:
        missing: Answer = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "needs a client that samples", missing)
    return content(text("the client samples"))


@tool("test_trigger_tool_change")
async def change_tools(context: Context, _: Arguments) -> Answer:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await context.session.send_tool_list_changed()
    await bus.publish(ToolsListChanged())
    return content(text("the tools have changed"))


@tool("test_trigger_prompt_change")
async def change_prompts(context: Context, _: Arguments) -> Answer:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await context.session.send_prompt_list_changed()
    await bus.publish(PromptsListChanged())
    return content(text("the prompts have changed"))


def form(message: str, **properties: str) -> Answer:
    shape = {name: {"type": kind} for name, kind in properties.items()}
    schema = {"type": "object", "properties": shape, "required": [*shape]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def completion(question: str) -> Answer:
    asked = [{"role": "user", "content": text(question)}]
    return {"method": "sampling/createMessage", "params": {"messages": asked, "maxTokens": 100}}


def ask(state: str | None = None, **requests: Answer) -> Answer:
    wanted: Answer = {"resultType": "input_required", "inputRequests": requests}
    return wanted if state is None else wanted | {"requestState": sign(state)}


def sign(state: str) -> str:
    return f"{state}|{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def signed_state(context: Context) -> str | None:
    given = (context.params or {}).get("requestState")
    if given is None:
        return None
    state = str(given).rpartition("|")[0]
    if not hmac.compare_digest(sign(state), str(given)):
        raise MCPError(types.INVALID_PARAMS, "this state is not of our making")
    return state


def told(context: Context, name: str) -> Any:
    """What the client answered to one question; None if it did not, or declined."""
    answer = ((context.params or {}).get("inputResponses") or {}).get(name)
    if not isinstance(answer, dict):
        return None
    return answer.get("content", answer) if answer.get("action", "accept") == "accept" else None


@tool("test_streaming_elicitation")
async def elicit_statelessly(context: Context, _: Arguments) -> Answer:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return await elicit(context, "Say a word", {"word": {"type": "string"}})
    word = told(context, "word")
    return content(text(f"heard {word}")) if word else ask(word=form("Say a word", word="string"))


@tool("test_input_required_result_elicitation")
async def ask_name(context: Context, _: Arguments) -> Answer:
    answer = told(context, "user_name")
    if isinstance(answer, dict) and isinstance(answer.get("name"), str):
        return content(text(f"Hello, {answer['name']}!"))
    return ask(user_name=form("What is your name?", name="string"))


@tool("test_input_required_result_sampling")
async def ask_model(context: Context, _: Arguments) -> Answer:
    answer = told(context, "capital_question")
    return content(text(str(answer))) if answer else ask(capital_question=completion("What is the capital of France?"))


@tool("test_input_required_result_list_roots")
async def ask_roots(context: Context, _: Arguments) -> Answer:
    answer = told(context, "client_roots")
    return content(text(json.dumps(answer))) if answer else ask(client_roots={"method": "roots/list"})


@tool("test_input_required_result_request_state")
async def ask_with_state(context: Context, _: Arguments) -> Answer:
    if signed_state(context) == "asked" and told(context, "confirm"):
        return content(text("state-ok"))
    return ask("asked", confirm=form("Go on?", ok="boolean"))


@tool("test_input_required_result_tampered_state")
async def ask_with_guarded_state(context: Context, arguments: Arguments) -> Answer:
    return await ask_with_state(context, arguments)


@tool("test_input_required_result_multiple_inputs")
async def ask_everything(context: Context, _: Arguments) -> Answer:
    signed_state(context)
    if all(told(context, name) for name in ("user_name", "greeting", "client_roots")):
        return content(text("all three are here"))
    return ask(
        "three",
        user_name=form("What is your name?", name="string"),
        greeting=completion("Greet me"),
        client_roots={"method": "roots/list"},
    )


@tool("test_input_required_result_multi_round")
async def ask_in_rounds(context: Context, _: Arguments) -> Answer:
    state = signed_state(context)
    if state == "first" and told(context, "step1"):
        return ask("second", step2=form("Step 2: which colour?", color="string"))
    if state == "second" and told(context, "step2"):
        return content(text("both steps done"))
    return ask("first", step1=form("Step 1: which name?", name="string"))


@tool("test_input_required_result_capabilities")
async def ask_what_can_be_answered(context: Context, _: Arguments) -> Answer:
    declared = context.session.client_capabilities
    requests: dict[str, Answer] = {}
    if declared is not None and declared.sampling is not None:
        requests["sample"] = completion("Say hello")
    if declared is not None and declared.elicitation is not None:
        requests["ask"] = form("What is your name?", name="string")
    return ask("capable", **requests)


@prompt("test_simple_prompt")
async def simple_prompt(_: Context, __: Arguments) -> Answer:
    return messages(text("This is a simple prompt for testing."))


@prompt("test_prompt_with_arguments", "arg1", "arg2")
async def prompt_with_arguments(_: Context, given: Arguments) -> Answer:
    return messages(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))


@prompt("test_prompt_with_embedded_resource", "resourceUri")
async def prompt_with_resource(_: Context, given: Arguments) -> Answer:
    return messages(embedded(given["resourceUri"], "Embedded resource content for testing."), text("Read it, please."))


@prompt("test_prompt_with_image")
async def prompt_with_image(_: Context, __: Arguments) -> Answer:
    return messages(image(), text("Look at it, please."))


@prompt("test_input_required_result_prompt")
async def prompt_that_asks(context: Context, _: Arguments) -> Answer:
    answer = told(context, "user_context")
    return messages(text(f"Use {answer}")) if answer else ask(user_context=form("In which context?", context="string"))


RESOURCES = {
    "test://static-text": "text/plain",
    "test://static-binary": "image/png",
    "test://watched-resource": "text/plain",
}


def read(uri: str) -> Answer:
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": DOT}
    if uri in RESOURCES:
        return {"uri": uri, "mimeType": "text/plain", "text": f"This is the content of {uri}."}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        part = uri.removeprefix("test://template/").removesuffix("/data")
        return {"uri": uri, "mimeType": "application/json", "text": json.dumps({"id": part, "templateTest": True})}
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


async def list_tools(_: Context, __: Any) -> Answer:
    return {"tools": [dump(each) for each, _ in tools.values()]}


async def call_tool(context: Context, params: types.CallToolRequestParams) -> Answer:
    if params.name not in tools:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await tools[params.name][1](context, params.arguments or {})


async def list_prompts(_: Context, __: Any) -> Answer:
    return {"prompts": [dump(each) for each, _ in prompts.values()]}


async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> Answer:
    if params.name not in prompts:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return await prompts[params.name][1](context, params.arguments or {})


async def list_resources(_: Context, __: Any) -> Answer:
    return {"resources": [{"uri": uri, "name": uri[7:], "mimeType": kind} for uri, kind in RESOURCES.items()]}


async def list_templates(_: Context, __: Any) -> Answer:
    return {"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]}


async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> Answer:
    return {"contents": [read(str(params.uri))]}


async def complete(_: Context, __: Any) -> Answer:
    return {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}


async def agree(_: Context, __: Any) -> Answer:
    return {}


def dump(model: types.Tool | types.Prompt) -> Answer:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def whole(act: Act) -> Act:
    """Say of an answer that it is all there is; the older protocol has no word for it."""

    async def answer(context: Context, params: Any) -> Answer:
        given = await act(context, params)
        return {"resultType": "complete", **given} if context.protocol_version in MODERN_PROTOCOL_VERSIONS else given

    return answer


def build() -> Server[Any]:
    hints: dict[Any, CacheHint] = {each: CacheHint(ttl_ms=60_000) for each in CACHEABLE_METHODS}
    server: Server[Any] = Server("fixture", version="1", cache_hints=hints)
    handlers: Sequence[tuple[str, Any, Any]] = (
        ("tools/list", types.PaginatedRequestParams, list_tools),
        ("tools/call", types.CallToolRequestParams, call_tool),
        ("prompts/list", types.PaginatedRequestParams, list_prompts),
        ("prompts/get", types.GetPromptRequestParams, get_prompt),
        ("resources/list", types.PaginatedRequestParams, list_resources),
        ("resources/templates/list", types.PaginatedRequestParams, list_templates),
        ("resources/read", types.ReadResourceRequestParams, read_resource),
        ("resources/subscribe", types.SubscribeRequestParams, agree),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, agree),
        ("completion/complete", types.CompleteRequestParams, complete),
        ("logging/setLevel", types.SetLevelRequestParams, agree),
    )
    for method, params, act in handlers:
        server.add_request_handler(method, params, whole(act))
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(bus))
    return server


async def serve_stdio() -> None:
    from mcp.server.stdio import stdio_server

    server = build()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def serve_http(port: int) -> None:
    import uvicorn

    uvicorn.run(build().streamable_http_app(), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        serve_http(int(sys.argv[2]))
