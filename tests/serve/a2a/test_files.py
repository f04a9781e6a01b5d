"""Files over A2A: arguments of calls on the way in, parts of artifacts on the way out."""

import base64
from typing import Any

import pytest

from tests.serve.a2a.agents import post
from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.config.sections.a2a import A2a
from toolreeve.config.sections.policy import Policy
from toolreeve.serve.a2a.files import files_of

VERSION = {"a2a-version": "1.0"}
NAMES = {"path": "notes.txt", "content": {"$file": "notes.txt"}}


def file(content: bytes, name: str = "notes.txt", **more: Any) -> dict[str, Any]:
    return {"raw": base64.b64encode(content).decode(), "filename": name, "mediaType": "text/plain", **more}


def said(*parts: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    call = {"data": {"toolId": "write_file", "parameters": parameters}}
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [call, *parts]}}


def bypassing(world: World, **more: Any) -> Toolreeve:
    return world.reeve(settings=world.settings(policy=Policy(mode="bypass"), **more))


async def test_a_file_is_the_argument_of_the_call_that_names_it(world: World) -> None:
    async with serving(bypassing(world)) as server:
        answer = await post(server, "SendMessage", said(file("grüße\n".encode()), **NAMES), **VERSION)

    task = answer["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert (world.workspace / "notes.txt").read_text() == "grüße\n"
    assert task["history"][0]["parts"][1] == {
        "text": "(a file of 8 bytes)",
        "filename": "notes.txt",
        "mediaType": "text/plain",
    }


async def test_the_content_of_a_file_is_asked_about_like_every_argument(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await post(server, "SendMessage", said(file(b"the content"), **NAMES), **VERSION)

    task = answer["result"]["task"]
    (question,) = [each["data"]["input_required"] for each in task["status"]["message"]["parts"] if "data" in each]
    assert question["tool_call"]["parameters"]["content"] == "the content"
    assert not (world.workspace / "notes.txt").exists()


async def test_bytes_come_as_base64_and_a_file_of_version_0_3_too(world: World) -> None:
    call = {"kind": "data", "data": {"toolId": "write_file", "parameters": {"path": "b", "content": {"$base64": "x"}}}}
    part = {"kind": "file", "file": {"bytes": base64.b64encode(b"\xff\x00").decode(), "name": "x"}}
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [call, part]}
    async with serving(bypassing(world)) as server:
        answer = await post(server, "message/send", {"message": message})

    assert answer["result"]["status"]["state"] == "completed"
    assert (world.workspace / "b").read_text() == "/wA="


BAD: dict[str, tuple[list[dict[str, Any]], int, str]] = {
    "nobody uses it": ([file(b"a", "other.txt"), file(b"b")], -32602, "no call uses the file 'other.txt'"),
    "not there": ([file(b"a", "other.txt")], -32602, "no file 'notes.txt'; its files: other.txt"),
    "no text": ([file(b"\xff\xfe")], -32602, "not UTF-8"),
    "twice": ([file(b"a"), file(b"b")], -32602, "same name"),
    "huge": ([file(b"a" * 1001)], -32602, "a2a.max_file_bytes"),
    "by address": ([{"url": "http://169.254.169.254/x", "filename": "notes.txt"}], -32005, "fetch_url"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_file_that_cannot_be_used_begins_nothing(world: World, case: str) -> None:
    parts, code, reason = BAD[case]
    async with serving(bypassing(world, a2a=A2a(max_file_bytes=1000))) as server:
        answer = await post(server, "SendMessage", said(*parts, **NAMES), **VERSION)
        listed = await post(server, "tasks/list", {})

    assert answer["error"]["code"] == code
    assert reason in answer["error"]["message"]
    assert listed["result"]["total"] == 0


async def test_an_image_that_a_tool_read_is_a_file_of_the_artifact(world: World) -> None:
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    (world.workspace / "a.png").write_bytes(pixel)
    async with serving(world.reeve()) as server:
        sent = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "/read_file path=a.png"}]}
        answer = await post(server, "SendMessage", {"message": sent}, **VERSION)

    part = answer["result"]["task"]["artifacts"][0]["parts"][0]
    assert (base64.b64decode(part["raw"]), part["mediaType"]) == (pixel, "image/png")


def test_what_an_mcp_server_returned_becomes_files_and_what_is_none_does_not() -> None:
    content = [
        {"type": "text", "text": "hello"},
        {"type": "audio", "data": "AAA=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a/b.bin", "blob": "AAA=", "mimeType": "x/y"}},
        {"type": "resource_link", "uri": "https://example.com/c", "name": "c"},
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        "text",
    ]

    found = [(part.raw, part.url, part.filename) for part in files_of((), {"content": content})]

    assert found == [(b"\0\0", "", ""), (b"\0\0", "", "b.bin"), (b"", "https://example.com/c", "c")]
