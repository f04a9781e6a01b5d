"""Tools for the road: one that returns, one that needs approval, one that fails."""

from toolreeve import DangerLevel, tool


@tool(danger=DangerLevel.SAFE)
async def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@tool(danger=DangerLevel.MEDIUM)
async def change(what: str = "") -> str:
    """Change something."""
    return f"changed {what}"


@tool(danger=DangerLevel.SAFE)
async def fail() -> None:
    """Raise."""
    raise KeyError("lost")
