"""A process that writes records until it is killed, and says each id once its record is acknowledged.

Run as `python -m tests.record.writer PATH [COUNT]`.
"""

import asyncio
import sys
from pathlib import Path

from tests.record.entries import entry, opened


async def main(path: Path, count: int) -> None:
    async with opened(path) as book:
        print("ready", flush=True)

        async def call() -> None:
            made = entry({"path": "a.txt"}, changes=True)
            await book.journal.intend(made)
            print(made.call.id, "intent", flush=True)
            written = book.journal.close(made)
            assert written is not None
            await written
            print(made.call.id, "call", flush=True)
            book.journal.close(entry({"path": "read only"}))

        async def work() -> None:
            for _ in range(count):
                await call()

        await asyncio.gather(*(work() for _ in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000))
