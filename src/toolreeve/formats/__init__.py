"""How does each model provider spell tools, calls and answers? Declared here, parsed here, answered here."""

from toolreeve.formats.answers import format_result, format_results
from toolreeve.formats.calls import ParsedCall, parse_calls
from toolreeve.formats.declarations import tools_for
from toolreeve.formats.names import Provider, wire_name

__all__ = ["ParsedCall", "Provider", "format_result", "format_results", "parse_calls", "tools_for", "wire_name"]
