"""The tool that is called: it says what it was told."""

from toolreeve import DangerLevel, tool


@tool(danger=DangerLevel.SAFE, inline=True)
async def echo(text: str) -> str:
    """Say it again."""
    return text
