from typing import Any

import pytest

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.tool import ToolSpec
from toolreeve.formats import tools_for

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "File path"}},
    "required": ["path"],
}
READ_FILE = ToolSpec(
    name="mcp__filesystem__read_file", description="Read a file from the filesystem", input=SCHEMA, source="test"
)


@pytest.mark.parametrize(
    ("provider", "declared"),
    [
        (
            "mcp",
            {
                "name": "mcp__filesystem__read_file",
                "description": "Read a file from the filesystem",
                "inputSchema": SCHEMA,
            },
        ),
        (
            "openai",
            {
                "type": "function",
                "function": {
                    "name": "mcp__filesystem__read_file",
                    "description": "Read a file from the filesystem",
                    "parameters": SCHEMA,
                },
            },
        ),
        (
            "ollama",
            {
                "type": "function",
                "function": {
                    "name": "mcp__filesystem__read_file",
                    "description": "Read a file from the filesystem",
                    "parameters": SCHEMA,
                },
            },
        ),
        (
            "openai_responses",
            {
                "type": "function",
                "name": "mcp__filesystem__read_file",
                "description": "Read a file from the filesystem",
                "parameters": SCHEMA,
            },
        ),
        (
            "anthropic",
            {
                "name": "mcp__filesystem__read_file",
                "description": "Read a file from the filesystem",
                "input_schema": SCHEMA,
            },
        ),
        (
            "gemini",
            {
                "functionDeclarations": [
                    {
                        "name": "mcp__filesystem__read_file",
                        "description": "Read a file from the filesystem",
                        "parameters": SCHEMA,
                    }
                ]
            },
        ),
    ],
)
def test_a_tool_is_declared_in_the_documented_shape(provider: str, declared: dict[str, Any]) -> None:
    assert tools_for(provider, [READ_FILE]) == [declared]


def test_a_tool_without_parameters_is_declared_as_each_provider_accepts_it() -> None:
    spec = ToolSpec(name="now", description="The time", input={"type": "object"}, source="test")
    empty = {"type": "object", "properties": {}}

    assert tools_for("openai", [spec])[0]["function"]["parameters"] == empty
    assert tools_for("anthropic", [spec])[0]["input_schema"] == empty
    assert tools_for("gemini", [spec]) == [{"functionDeclarations": [{"name": "now", "description": "The time"}]}]


def test_an_output_schema_is_declared_where_mcp_asks_for_it() -> None:
    spec = ToolSpec(name="now", description="", input={}, output={"type": "object"}, source="test")

    assert tools_for("mcp", [spec])[0]["outputSchema"] == {"type": "object"}


def test_no_tools_are_no_declarations() -> None:
    assert tools_for("gemini", []) == tools_for("openai", []) == []


def test_an_unknown_provider_is_misuse() -> None:
    with pytest.raises(ToolreeveError, match="unknown provider"):
        tools_for("bard", [])
