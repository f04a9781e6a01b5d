"""Our agent in an editor: the client of the official Python SDK against `toolreeve acp`."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

import acp
from tests.acp.test_schema import Schema, schema
from toolreeve.acp.server.editor import _servers
from toolreeve.config import Settings, from_settings
from toolreeve.testing import ScriptedModel, call, say
from toolreeve.testing.script import Reply

__all__ = ["schema"]
WRITE = call("write_file", path="a.txt", content="new\n")


class Editor:
    """What an editor sees. It chooses the option `chooses`, once for every question; None dismisses it."""

    def __init__(self, chooses: str | None = "allow_once") -> None:
        self.chooses = chooses
        self.updates: list[dict[str, Any]] = []
        self.asked: list[Any] = []
        self.parked = asyncio.Event()

    def on_connect(self, connection: Any) -> None:
        """Nothing to keep."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append((tool_call, options))
        self.parked.set()
        if self.chooses == "wait":
            await asyncio.Event().wait()
        if self.chooses is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.chooses))

    def kinds(self) -> list[str]:
        return [each["sessionUpdate"] for each in self.updates]

    def said(self) -> str:
        return "".join(
            each["content"]["text"] for each in self.updates if each["sessionUpdate"] == "agent_message_chunk"
        )


@asynccontextmanager
async def editing(
    place: Path, turns: list[Reply], editor: Editor, *words: str, **more: Any
) -> AsyncIterator[tuple[Any, str]]:
    work = place / "work"
    work.mkdir(exist_ok=True)
    with ScriptedModel(turns) as model:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(place / "home"),
            "OPENAI_API_KEY": "scripted",
        }
        command = [sys.executable, "-m", "toolreeve", "acp", "--model", "openai:scripted"]
        async with acp.spawn_agent_process(
            cast(Any, editor), *command, "--base-url", model.base_url("openai"), *words, env=env, cwd=str(place), **more
        ) as (connection, _):
            await connection.initialize(protocol_version=1)
            yield connection, str(work)


async def prompt(connection: Any, session: str, text: str = "go") -> Any:
    return await asyncio.wait_for(connection.prompt(session_id=session, prompt=[acp.text_block(text)]), 60)


async def test_an_editor_sees_text_diffs_and_permissions(tmp_path: Path) -> None:
    editor = Editor()
    run = call("bash", command="echo printed && touch made")
    async with editing(tmp_path, [WRITE, run, say("All done.")], editor) as (connection, work):
        session = await connection.new_session(cwd=work, mcp_servers=[])
        answer = await prompt(connection, session.session_id)

    assert answer.stop_reason == "end_turn"
    assert (tmp_path / "work" / "a.txt").read_text() == "new\n"
    assert editor.said() == "All done."
    assert editor.kinds().count("tool_call") == 2
    diff = next(each for update in editor.updates for each in update.get("content", []) if "newText" in each)
    assert (diff["path"], diff.get("oldText"), diff["newText"]) == (f"{work}/a.txt", None, "new\n")
    assert "printed" in str(editor.updates)
    tool_call, options = editor.asked[0]
    assert tool_call.raw_input["path"] == "a.txt"
    assert {"allow_once", "allow_always", "reject_once"} <= {each.kind for each in options}
    assert tool_call.tool_call_id in {each.get("toolCallId") for each in editor.updates}


@pytest.mark.parametrize("chooses", ["reject_once", "no such option", None])
async def test_nothing_is_written_unless_an_offered_option_allows_it(tmp_path: Path, chooses: str | None) -> None:
    editor = Editor(chooses)
    async with editing(tmp_path, [WRITE, say("It was refused.")], editor) as (connection, work):
        session = await connection.new_session(cwd=work, mcp_servers=[])
        answer = await prompt(connection, session.session_id)

    assert answer.stop_reason == "end_turn"
    assert not (tmp_path / "work" / "a.txt").exists()
    assert [each.get("status") for each in editor.updates if "toolCallId" in each][-1] == "failed"


async def test_a_cancelled_turn_ends_as_cancelled(tmp_path: Path) -> None:
    editor = Editor("wait")
    async with editing(tmp_path, [WRITE, say("again")], editor) as (connection, work):
        session = await connection.new_session(cwd=work, mcp_servers=[])
        running = asyncio.create_task(prompt(connection, session.session_id))
        await asyncio.wait_for(editor.parked.wait(), 30)
        await connection.cancel(session_id=session.session_id)
        answer = await running
        later = await prompt(connection, session.session_id)

    assert (answer.stop_reason, later.stop_reason) == ("cancelled", "end_turn")
    assert not (tmp_path / "work" / "a.txt").exists()


async def test_modes_and_options_take_effect(tmp_path: Path) -> None:
    editor = Editor()
    async with editing(tmp_path, [WRITE, say("could not")], editor) as (connection, work):
        session = await connection.new_session(cwd=work, mcp_servers=[])
        modes = [each.id for each in session.modes.available_modes]
        await connection.set_session_mode(session_id=session.session_id, mode_id="plan")
        with pytest.raises(acp.RequestError, match="modeId must be one of"):
            await connection.set_session_mode(session_id=session.session_id, mode_id="bypass")
        answer = await connection.set_config_option(session_id=session.session_id, config_id="phases", value="on")
        await connection.set_config_option(session_id=session.session_id, config_id="phases", value="off")
        await prompt(connection, session.session_id)

    assert modes == ["default", "accept_edits", "plan", "strict"]
    assert answer.config_options[0].current_value == "on"
    assert not (tmp_path / "work" / "a.txt").exists()
    assert editor.asked == []


async def test_a_session_is_listed_and_continued_by_another_process(tmp_path: Path) -> None:
    editor = Editor()
    async with editing(tmp_path, [WRITE, say("First.")], editor) as (connection, work):
        session = await connection.new_session(cwd=work, mcp_servers=[])
        await prompt(connection, session.session_id, "the first task")

    later = Editor()
    async with editing(tmp_path, [say("Second.")], later) as (connection, work):
        listed = await connection.list_sessions(cwd=work)
        await connection.load_session(cwd=work, session_id=session.session_id, mcp_servers=[])
        shown = later.kinds()
        await prompt(connection, session.session_id, "the second task")
        with pytest.raises(acp.RequestError, match="Resource not found"):
            await connection.load_session(cwd=work, session_id="none", mcp_servers=[])

    assert [each for each in shown if each != "current_mode_update"] == [
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert [each.session_id for each in listed.sessions] == [session.session_id]
    assert later.said() == "First.Second."


async def test_values_of_the_editors_servers_are_taken_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project's settings reach the editor: a reference in them would hand our keys to a server of its choice."""
    monkeypatch.setenv("OUR_KEY", "key-of-the-user")
    reference = "${env:OUR_KEY} ${secret:OUR_KEY} ${OUR_KEY:-x} ${userHome}"
    pairs = [{"name": "a", "value": reference}]
    entries = [
        {"name": "one", "command": "/bin/true", "args": [reference], "env": pairs},
        {"type": "http", "name": "two", "url": "https://example.com/mcp", "headers": pairs},
    ]

    one, two = _servers(entries, from_settings(Settings(), cwd=tmp_path)).mcp_servers

    assert (one.args, one.env["a"]) == ((reference,), reference)
    assert two.headers["a"] == reference


async def test_every_frame_to_an_editor_is_valid(tmp_path: Path, schema: Schema) -> None:
    frames: list[Any] = []
    methods: dict[Any, str] = {}

    def observe(event: Any) -> None:
        message = event.message
        if event.direction.value == "incoming":
            frames.append(message)
        elif "id" in message and "method" in message:
            methods[message["id"]] = message["method"]

    run = call("bash", command="echo x && touch y")
    async with editing(tmp_path, [WRITE, run, say("Done.")], Editor(), observers=[observe]) as (connection, work):
        session = await connection.new_session(cwd=work, mcp_servers=[])
        await connection.set_session_mode(session_id=session.session_id, mode_id="strict")
        await prompt(connection, session.session_id)
        await connection.list_sessions()

    for frame in frames:
        if "method" in frame:
            schema.check(frame["method"], frame["params"])
        elif "result" in frame:
            schema.check(methods[frame["id"]], frame["result"], answer=True)
    assert {"session/update", "session/request_permission"} <= {frame.get("method") for frame in frames}
