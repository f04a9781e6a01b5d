"""Provider formats: tool declarations, calls and results of each provider."""

from toolreeve.formats.calls import ParsedCall, find_provider, parse_calls
from toolreeve.formats.declarations import tools_for
from toolreeve.formats.mcp_tools import convert_mcp_to_openai_tools, get_tools_for_provider
from toolreeve.formats.names import Provider, wire_name
from toolreeve.formats.results import format_result, format_results

__all__ = [
    "ParsedCall",
    "Provider",
    "convert_mcp_to_openai_tools",
    "find_provider",
    "format_result",
    "format_results",
    "get_tools_for_provider",
    "parse_calls",
    "tools_for",
    "wire_name",
]
