from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.schema import Schema
from toolreeve.formats import ParsedCall, Provider, find_provider, parse_calls, wire_name

READ = ParsedCall("read_file", {"path": "a.txt"}, "c1")
ARGUMENTS = '{"path": "a.txt"}'
FUNCTION = {"name": "read_file", "arguments": ARGUMENTS}
CHAT = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}]}
RESPONSE_ITEM = {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "read_file", "arguments": ARGUMENTS}
TOOL_USE = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a.txt"}}
OLLAMA = {"role": "assistant", "tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "a.txt"}}}]}
GEMINI = {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a.txt"}}}


def as_objects(value: Any) -> Any:
    """Plain data as an SDK gives it: attributes instead of keys, except in what the model wrote itself."""
    if isinstance(value, list):
        return [as_objects(each) for each in value]
    if isinstance(value, dict):
        written = ("input", "args", "arguments")
        return SimpleNamespace(**{k: v if k in written else as_objects(v) for k, v in value.items()})
    return value


MESSAGES = [
    ("openai", CHAT),
    ("openai", {"choices": [{"index": 0, "message": CHAT}]}),
    ("openai", CHAT["tool_calls"]),
    ("openai", {"output": [{"type": "reasoning"}, RESPONSE_ITEM]}),
    ("openai_responses", {"output": [{"type": "reasoning"}, RESPONSE_ITEM]}),
    ("openai_responses", [RESPONSE_ITEM]),
    ("openai_responses", RESPONSE_ITEM),
    ("anthropic", {"role": "assistant", "content": [{"type": "text", "text": "Well."}, TOOL_USE]}),
    ("anthropic", [TOOL_USE]),
    ("anthropic", TOOL_USE),
    ("gemini", {"candidates": [{"content": {"role": "model", "parts": [{"text": "Well."}, GEMINI]}}]}),
    ("gemini", {"parts": [GEMINI]}),
    ("gemini", [{"function_call": GEMINI["functionCall"]}]),
    ("gemini", GEMINI),
    (
        "mcp",
        {
            "jsonrpc": "2.0",
            "id": "c1",
            "method": "tools/call",
            "params": {"name": "read_file", "arguments": {"path": "a.txt"}},
        },
    ),
]


@pytest.mark.parametrize(("provider", "message"), MESSAGES)
def test_a_call_is_read_from_plain_data_and_from_objects_alike(provider: str, message: Any) -> None:
    assert parse_calls(provider, message) == [READ]
    assert parse_calls(provider, as_objects(message)) == [READ]


@pytest.mark.parametrize("message", [OLLAMA, {"model": "llama3", "message": OLLAMA}])
def test_ollama_gives_arguments_as_an_object_and_no_id(message: Any) -> None:
    assert parse_calls("ollama", message) == [ParsedCall("read_file", {"path": "a.txt"})]
    assert parse_calls("ollama", as_objects(message)) == [ParsedCall("read_file", {"path": "a.txt"})]


def test_the_parameters_of_an_mcp_request_are_enough_and_another_method_is_no_call() -> None:
    params = {"name": "read_file", "arguments": {"path": "a.txt"}}

    assert parse_calls("mcp", params) == [ParsedCall("read_file", {"path": "a.txt"})]
    assert parse_calls("mcp", {"id": 7, "method": "tools/call", "params": params})[0].id == "7"
    assert parse_calls("mcp", {"id": 7, "method": "prompts/get", "params": params}) == []


@pytest.mark.parametrize(
    ("provider", "response"),
    [
        ("openai", {"choices": []}),
        ("openai_responses", {"output": []}),
        ("anthropic", {"content": [], "stop_reason": "end_turn"}),
        ("gemini", {"candidates": []}),
        ("ollama", {"message": {"role": "assistant"}, "done": True}),
    ],
)
def test_a_whole_response_shows_whose_it_is(provider: str, response: dict[str, object]) -> None:
    assert find_provider(response) == provider


def test_several_calls_keep_their_order() -> None:
    calls = [{"id": f"c{n}", "function": {"name": "echo", "arguments": f'{{"n": {n}}}'}} for n in range(3)]

    assert [(call.id, call.args) for call in parse_calls("openai", {"tool_calls": calls})] == [
        ("c0", {"n": 0}),
        ("c1", {"n": 1}),
        ("c2", {"n": 2}),
    ]


@pytest.mark.parametrize("arguments", ["", "  ", None, "{}", {}])
def test_nothing_sent_means_no_arguments(arguments: Any) -> None:
    (call,) = parse_calls("openai", {"tool_calls": [{"id": "c1", "function": {"name": "x", "arguments": arguments}}]})

    assert call == ParsedCall("x", {}, "c1")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"path": "a.txt"', "not valid JSON"),
        ("{'path': 'a.txt'}", "not valid JSON"),
        ('{"path": NaN}', "not valid JSON"),
        ("[" * 10_000, "not valid JSON"),
        ('"\ud800"', "not valid JSON"),
        ('["a.txt"]', "must be a JSON object, got list"),
        ("null", "must be a JSON object, got NoneType"),
        (["a.txt"], "must be a JSON object, got list"),
        (7, "must be a JSON object, got int"),
    ],
)
def test_unreadable_arguments_are_a_call_that_the_road_refuses(arguments: Any, problem: str) -> None:
    (call,) = parse_calls("openai", {"tool_calls": [{"id": "c1", "function": {"name": "x", "arguments": arguments}}]})

    assert call.problem is not None
    assert problem in call.problem
    with pytest.raises(ToolError) as refused:
        Schema({"type": "object"}).parse(call.args)
    assert refused.value.code is ErrorCode.INVALID_PARAMS


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("name", ["fs/read.text", "1st", "server__" + "long" * 30])
def test_a_name_comes_back_as_the_tool_is_called_here(provider: Provider, name: str) -> None:
    spelled = wire_name(provider, name)
    message = {
        Provider.ANTHROPIC: {"content": [{"type": "tool_use", "name": spelled, "input": {}}]},
        Provider.GEMINI: {"parts": [{"functionCall": {"name": spelled}}]},
        Provider.MCP: {"name": spelled},
    }.get(provider, {"tool_calls": [{"function": {"name": spelled}}]})

    (call,) = parse_calls(provider, message, known=["other", name])

    assert call.name == name


KEYS = st.sampled_from(
    [
        *("choices", "message", "tool_calls", "function", "name", "arguments", "id", "type", "output", "content"),
        *("input", "candidates", "parts", "functionCall", "args", "params", "method"),
    ]
)
ANYTHING = st.recursive(
    st.none() | st.integers() | st.sampled_from(["function_call", "tool_use", "tools/call", "{", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize("provider", Provider)
@given(message=ANYTHING)
def test_no_message_makes_it_raise(provider: Provider, message: Any) -> None:
    for call in parse_calls(provider, message):
        assert isinstance(call.name, str)
        assert isinstance(call.args, dict) is (call.problem is None)


def test_a_message_wrapped_in_itself_without_end_is_no_call() -> None:
    message: Any = {}
    for _ in range(5000):
        message = {"choices": [{"message": message}], "message": message, "candidates": [{"content": message}]}

    assert [parse_calls(provider, message) for provider in Provider] == [[]] * len(Provider)
