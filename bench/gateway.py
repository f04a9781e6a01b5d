"""One gateway under load: durable calls for some seconds. `python -m bench.gateway STATE URL SECONDS`"""

import asyncio
import sys
from pathlib import Path

from bench.record import calls_a_second, touch
from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace


async def main(place: Path, url: str, seconds: float) -> None:
    (place / "work").mkdir(parents=True, exist_ok=True)
    state = State(dir=str(place / "state"), url=url)
    async with Toolreeve(
        settings=Settings(workspace=Workspace(dir=str(place / "work")), state=state), tools=[touch]
    ) as reeve:
        await calls_a_second(reeve, seconds=0.5)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(await calls_a_second(reeve, seconds=seconds), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
