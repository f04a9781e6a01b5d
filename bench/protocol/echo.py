"""The tool that is called: it returns its argument."""

from toolreeve import DangerLevel, tool


@tool(danger=DangerLevel.SAFE, inline=True)
async def echo(text: str) -> str:
    """Say it again."""
    return text
