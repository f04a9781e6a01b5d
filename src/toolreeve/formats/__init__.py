"""Provider formats: tool declarations, calls and results as each model provider writes them."""

from toolreeve.formats.calls import ParsedCall, parse_calls
from toolreeve.formats.declarations import tools_for
from toolreeve.formats.names import Provider, wire_name
from toolreeve.formats.results import format_result, format_results

__all__ = ["ParsedCall", "Provider", "format_result", "format_results", "parse_calls", "tools_for", "wire_name"]
