"""Your own tool on the same road as the builtin ones: validated, decided, recorded."""

import asyncio

from toolreeve import Toolreeve, tool


@tool(danger="safe", timeout=5.0)
def word_count(text: str, minimum: int = 1) -> dict[str, int]:
    """Count the words of a text.

    Args:
        text: The text to look at.
        minimum: Words shorter than this are left out.
    """
    return {"words": sum(len(word) >= minimum for word in text.split())}


async def main() -> None:
    async with Toolreeve(tools=[word_count]) as reeve:
        result = await reeve.call("word_count", text="to be or not to be", minimum=3)
        print(result.data)  # → {'words': 1}
        wrong = await reeve.call("word_count", txt="to be", minimum="three")
        print(wrong.error.code if wrong.error else "")  # → E_INVALID_PARAMS
        print([entry["tool"] for entry in await reeve.audit.recent(last_n=2, filters={})])
        # → ['word_count', 'word_count']


asyncio.run(main())
