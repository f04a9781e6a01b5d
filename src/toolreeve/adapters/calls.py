"""Calls from other frameworks, under the names that model providers accept."""

from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.formats.names import Provider, tool_name
from toolreeve.runtime.toolreeve import Toolreeve


async def run_text(reeve: Toolreeve, name: str, args: Any) -> str:
    """The result as a model reads it. Never raises for what goes wrong in a call: arguments that are no object are
    refused on the road, and recorded."""
    known = [bound.spec.name for bound in reeve.tools.list()]
    call = ToolCall(
        tool=tool_name(Provider.OPENAI, name, known),
        args=args,
        session=reeve.session,
        principal=reeve.principal,
        origin=reeve.origin,
    )
    return (await reeve.run(call)).to_text()
