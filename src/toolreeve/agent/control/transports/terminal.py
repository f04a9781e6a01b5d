"""Terminal transport: asks the person there, and sends the answer back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from toolreeve.agent.control.messages import ControlRequest, ControlResponse
from toolreeve.agent.control.transports.transport import Inbox, check_connected, check_unconnected
from toolreeve.approval.channels.tty import Console, Hangup, find_terminal, open_console
from toolreeve.core import json
from toolreeve.core.visible import visible

APPROVE = "Approve? [y] once  [a] all of this session  [n] no: "
_ANSWERS: dict[str, dict[str, Any]] = {
    "y": {"approved": True, "action": "once"},
    "yes": {"approved": True, "action": "once"},
    "a": {"approved": True, "action": "all"},
    "all": {"approved": True, "action": "all"},
    "n": {"approved": False, "action": "once"},
    "no": {"approved": False, "action": "once"},
}


class CLITransport:
    """`device` is the terminal, by default the controlling one. One question at a time; no default answer."""

    def __init__(self, device: str | None = None) -> None:
        self._device = device
        self._inbox = Inbox()
        self._turn = asyncio.Lock()
        self._asking: set[asyncio.Task[None]] = set()
        self._connected = False

    async def connect(self) -> None:
        check_unconnected(connected=self._connected)
        if find_terminal(self._device) is None:
            raise ConnectionError("there is no terminal to ask on")
        self._connected = True

    async def write(self, data: str) -> None:
        check_connected(connected=self._connected)
        task = asyncio.create_task(self._show(ControlRequest.from_dict(json.loads(data))))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def read_messages(self) -> AsyncIterator[str]:
        return self._inbox.read()

    async def close(self) -> None:
        if self._connected:
            self._connected = False
            for task in self._asking:
                task.cancel()
            self._inbox.close()

    def is_ready(self) -> bool:
        return self._connected and find_terminal(self._device) is not None

    async def _show(self, request: ControlRequest) -> None:
        async with self._turn:
            device = find_terminal(self._device)
            if device is None:
                self._fail(request, "the terminal is no longer available")
                return
            with open_console(device) as console:
                try:
                    answer = await _ask(console, request)
                except Hangup as problem:
                    self._fail(request, str(problem))
                    return
        if answer is not None:
            self._inbox.put(ControlResponse(request.request_id, answer).to_json())

    def _fail(self, request: ControlRequest, why: str) -> None:
        self._inbox.put(ControlResponse(request.request_id, error=why).to_json())


async def _ask(console: Console, request: ControlRequest) -> dict[str, Any] | None:
    data = request.data
    match request.type:
        case "progress_update":
            percentage = f" ({data['percentage']:g} %)" if "percentage" in data else ""
            await console.say(f"{visible(str(data.get('message', '')))}{percentage}\n")
            return None
        case "question":
            return {"answer": await _choose(console, data)}
        case "approval":
            prompt = str(data.get("prompt") or _described(data))
            await console.say(f"\n{visible(prompt)}\n")
            while True:
                console.discard_typed()
                await console.say(APPROVE)
                if (answer := _ANSWERS.get((await console.line()).lower())) is not None:
                    return answer


async def _choose(console: Console, data: Any) -> str:
    """The text typed; of options, one by its number or its name."""
    options = [str(option) for option in data.get("options") or ()]
    await console.say(f"\n{visible(str(data.get('question', '')))}\n")
    for number, option in enumerate(options, 1):
        await console.say(f"  {number}. {visible(option)}\n")
    while True:
        console.discard_typed()
        await console.say("> ")
        typed = await console.line()
        if not options and typed:
            return typed
        if typed.isdigit() and 1 <= int(typed) <= len(options):
            return options[int(typed) - 1]
        if typed in options:
            return typed


def _described(data: Any) -> str:
    return f"{data.get('action', 'approve')}\n{json.pretty(data.get('details', {}))}"
