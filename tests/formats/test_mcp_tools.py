import pytest

from toolreeve.core.errors import ToolreeveError
from toolreeve.formats import convert_mcp_to_openai_tools, get_tools_for_provider

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = {"name": "mcp__fs__read_file", "description": "Read a file", "inputSchema": SCHEMA}


def test_openai_takes_functions() -> None:
    declared = {"name": "mcp__fs__read_file", "description": "Read a file", "parameters": SCHEMA}

    assert convert_mcp_to_openai_tools([TOOL]) == [{"type": "function", "function": declared}]
    assert get_tools_for_provider([TOOL], "ollama") == get_tools_for_provider([TOOL], "openai")


def test_anthropic_takes_an_input_schema() -> None:
    assert get_tools_for_provider([TOOL], "anthropic") == [
        {"name": "mcp__fs__read_file", "description": "Read a file", "input_schema": SCHEMA}
    ]


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(ToolreeveError, match="unknown provider"):
        get_tools_for_provider([TOOL], "acme")
