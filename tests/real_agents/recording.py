"""Records what a real ACP agent sends, for the tests that need no agent: `RECORD_ACP=FOLDER make agents`."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolreeve.runtime.toolreeve import Toolreeve
from toolreeve.upstream.transports.transport import Transport

UPDATES = ("tool_call", "tool_call_update", "current_mode_update", "plan", "usage_update")
LONGEST = 20_000


class Recording:
    """A transport that keeps what is about tool calls, with the paths of the run made the same in every run."""

    def __init__(self, transport: Transport, file: Path, places: Mapping[str, str]) -> None:
        self._transport = transport
        self._file = file
        self._places = places

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def open(self, on_message: Callable[[Any], None], on_lost: Callable[[str], None]) -> None:
        def keep(message: Any) -> None:
            self._keep(message)
            on_message(message)

        await self._transport.open(keep, on_lost)

    def _keep(self, message: Mapping[str, Any]) -> None:
        update = message.get("params", {}).get("update", {}).get("sessionUpdate", "")
        if "method" not in message or (message["method"] == "session/update" and update not in UPDATES):
            return
        line = json.dumps(message)
        for found, neutral in self._places.items():  # some leave out the first slash
            line = line.replace(found, neutral).replace(found[1:], neutral[1:])
        if len(line) < LONGEST:
            with self._file.open("a") as kept:
                kept.write(line + "\n")


def record(reeve: Toolreeve, name: str, scenario: str, places: Mapping[str, str]) -> None:
    """From now on, if a folder is named in the environment."""
    if not (folder := os.environ.get("RECORD_ACP")):
        return
    file = Path(folder) / f"{name}-{scenario}.jsonl"
    file.unlink(missing_ok=True)
    connect = reeve.internals.connect
    vars(reeve.internals)["connect"] = lambda program: Recording(connect(program), file, places)
