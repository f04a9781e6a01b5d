"""Scripted people, and calls to ask them about."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolreeve.approval.broker import Broker
from toolreeve.approval.channels.callback import CallbackChannel
from toolreeve.approval.grants import Grants
from toolreeve.approval.request import Answer, Request, pose
from toolreeve.core.action import Action
from toolreeve.core.call import Principal, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode
from toolreeve.core.events import Event
from toolreeve.core.files import Files
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import bind, tool
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.record.store import Store

ASK = Verdict(Decision.ASK, "default", "Default mode: medium tools are asked for")


class Place:
    """A workspace of which only the root matters; `moved` is where its paths lead after somebody swapped a link."""

    def __init__(self) -> None:
        self.root = "/w"


def call(
    name: str = "write_file",
    args: dict[str, Any] | None = None,
    *,
    session: str = "s",
    user: str = "ann",
    danger: DangerLevel = DangerLevel.MEDIUM,
    effects: Callable[..., list[Effect]] | None = None,
    description: str = "",
) -> Action:
    async def work() -> str:
        return ""

    given = {"path": "a.txt", "content": "x"} if args is None else args
    schema = {"type": "object"}
    made = tool(name=name, danger=danger, effects=effects, input_schema=schema, description=description or name)(work)
    made_call = ToolCall(tool=name, args=given, session=session, principal=Principal(user=user))
    return Action(made_call, bind(made), given, Place())  # type: ignore[arg-type]


def question(**arguments: Any) -> Request:
    return pose(call(args=arguments or None), ASK, version="1", timeout=60.0, lasting="- a rule")


def code(result: ToolResult) -> ErrorCode | None:
    return None if result.error is None else result.error.code


def writes(args: dict[str, Any], files: Files) -> list[Effect]:
    return [Effect(EffectKind.WRITE, f"{files.root}/{args['path']}")]


def runs(args: dict[str, Any], _: Files) -> list[Effect]:
    return [Effect(EffectKind.EXEC, "sh")]


class Person:
    """Answers when told to, and knows whether the question was taken back."""

    def __init__(self, name: str = "person", *, there: bool = True) -> None:
        self.name = name
        self.there = there
        self.asked: asyncio.Event = asyncio.Event()
        self.withdrawn = False
        self.requests: list[Request] = []
        self.says: asyncio.Future[Callable[[Request], Any]] | None = None

    def available(self) -> bool:
        return self.there

    async def ask(self, request: Request) -> Answer:
        self.requests.append(request)
        self.says = asyncio.get_running_loop().create_future()
        self.asked.set()
        try:
            answer: Answer = (await self.says)(request)
        except asyncio.CancelledError:
            self.withdrawn = True
            raise
        return answer

    def say(self, answer: Callable[[Request], Any]) -> None:
        assert self.says is not None
        self.says.set_result(answer)


@asynccontextmanager
async def open_grants(folder: Path, *, process: str = "one", **options: Any) -> AsyncIterator[Grants]:
    """Session grants in a real database."""
    store = Store(folder / "grants.db")
    await store.start()
    try:
        yield Grants(store.grants(time.time), now=time.time, process=process, **options)
    finally:
        await store.close()


def broker_of(answer: Callable[[Request], Any], **options: Any) -> Broker:
    async def approve(request: Request) -> Any:
        return answer(request)

    return Broker([CallbackChannel(approve)], now=lambda: 1.0, **options)


class Listener:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def told(self) -> list[tuple[str, str | None]]:
        return [(event.event, event.data.get("outcome")) for event in self.events]
