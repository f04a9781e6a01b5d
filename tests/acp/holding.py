"""Holds the scripted agent of these tests, in its sandbox."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolreeve.acp.client.agents import find_agent
from toolreeve.acp.client.held_agent import HeldAgent, hold_agent
from toolreeve.approval.request import Request
from toolreeve.config import Settings
from toolreeve.config.sections.state import State
from toolreeve.config.sections.workspace import Workspace
from toolreeve.runtime.toolreeve import Toolreeve

PROGRAM = Path(__file__).with_name("scripted_agent.py")
ALLOW_ONCE = {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"}
ALLOW_ALWAYS = {"optionId": "proceed_always", "name": "Always", "kind": "allow_always"}
REJECT = {"optionId": "cancel", "name": "Reject", "kind": "reject_once"}
OPTIONS = [ALLOW_ALWAYS, ALLOW_ONCE, REJECT]


class Person:
    """Answers every question the same, and keeps what was asked."""

    def __init__(self, *, says: bool) -> None:
        self.says = says
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> bool:
        self.asked.append(request)
        return self.says


def settings_for(place: Path, **table: Any) -> Settings:
    agent = {
        "command": sys.executable,
        "args": [str(PROGRAM)],
        "home": str(place / "home"),
        "readable": [str(PROGRAM.parent)],
        "tools": False,
        **table,
    }
    (place / "work").mkdir(exist_ok=True)
    return Settings(
        workspace=Workspace(dir=str(place / "work")), state=State(dir=str(place / "state")), acp_agents={"test": agent}
    )


def write_script(place: Path, script: Mapping[str, Any]) -> None:
    (place / "home").mkdir(parents=True, exist_ok=True)
    (place / "home" / "script.json").write_text(json.dumps(script))


@asynccontextmanager
async def holding(
    place: Path, *steps: Mapping[str, Any], person: Person | None = None, script: Any = None, **table: Any
) -> AsyncIterator[HeldAgent]:
    write_script(place, {"steps": steps, **(script or {})})
    async with (
        Toolreeve(settings=settings_for(place, **table), approve=person) as reeve,
        hold_agent(reeve, find_agent(reeve.configuration, "test")) as agent,
    ):
        yield agent


def found(place: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((place / "home" / "found.json").read_text())
    return value


async def until(holds: Callable[[], bool]) -> None:
    """Of what other processes do."""
    for _ in range(1500):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def found_after(place: Path) -> dict[str, Any]:
    """What it found out after its turn."""
    file = place / "home" / "after.json"
    await until(lambda: file.exists() and bool(file.read_text()))
    value: dict[str, Any] = json.loads(file.read_text())
    return value


def received(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "home" / "received").read_text().splitlines()]


def asks(call: Mapping[str, Any], options: Any = OPTIONS) -> dict[str, Any]:
    """A step that asks for permission."""
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "c1", **call}, "options": options}
    return {"request": {"method": "session/request_permission", "params": params}}


def requests(method: str, **params: Any) -> dict[str, Any]:
    return {"request": {"method": method, "params": {"sessionId": "s1", **params}}}


def chosen(place: Path) -> list[Any]:
    """What was selected in answer to each permission request."""
    answers = (each["result"]["outcome"] for each in found(place)["answers"])
    return [each.get("optionId", each["outcome"]) for each in answers]
