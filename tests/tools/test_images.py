"""`read_file` returns an image as image content, once, and nothing that only claims to be one."""

import base64

import pytest

from tests.world import World
from toolreeve.formats import format_result
from toolreeve.tools.images import MAX_IMAGE

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


async def test_an_image_is_returned_as_image_content(world: World) -> None:
    (world.workspace / "a.PNG").write_bytes(PNG)
    async with world.reeve() as reeve:
        result = await reeve.call("read_file", path="a.PNG")
    sent = result.to_mcp()

    encoded = base64.b64encode(PNG).decode()
    assert sent["content"] == [
        {"type": "text", "text": "[image/png, 108 bytes]"},
        {"type": "image", "data": encoded, "mimeType": "image/png"},
    ]
    assert encoded not in str(sent["structuredContent"])
    assert sent["structuredContent"]["mime_type"] == "image/png"


async def test_a_model_provider_gets_the_image_too(world: World) -> None:
    (world.workspace / "a.png").write_bytes(PNG)
    async with world.reeve() as reeve:
        result = await reeve.call("read_file", path="a.png")
    (block,) = format_result("anthropic", "1", result)["content"]

    assert [each["type"] for each in block["content"]] == ["text", "image"]
    assert block["content"][1]["source"]["media_type"] == "image/png"


@pytest.mark.parametrize(
    ("data", "reason"), [(b"not a picture", "is not an image"), (PNG + bytes(MAX_IMAGE), "above 5 MB")]
)
async def test_what_is_no_image_or_too_large_is_refused(world: World, data: bytes, reason: str) -> None:
    (world.workspace / "a.png").write_bytes(data)
    async with world.reeve() as reeve:
        result = await reeve.call("read_file", path="a.png")

    assert result.error is not None
    assert reason in result.error.message
