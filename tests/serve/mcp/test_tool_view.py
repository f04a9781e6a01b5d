from typing import Any

import orjson
import pytest

from toolreeve import DangerLevel, ToolRegistry
from toolreeve.core.call import Role
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.core.toolset import read_toolset
from toolreeve.runtime.builtin import TOOLS
from toolreeve.serve.mcp.protocol import WireError
from toolreeve.serve.mcp.tool_definitions import describe
from toolreeve.serve.mcp.tool_view import PAGE, ToolView, as_fragment, write_cursor


def bound(name: str, **known: Any) -> BoundTool:
    async def run(_: Any, __: Any) -> Output:
        return Output(data={})

    spec = ToolSpec(name=name, description=name, input={"type": "object"}, **known)
    return BoundTool(spec=spec, run=run, input=Schema(spec.input))


def names(view: ToolView, **asked: Any) -> list[str]:
    return [str(each["name"]) for each in view.page(**asked).tools]


def test_a_viewer_sees_only_what_reads() -> None:
    registry = ToolRegistry(TOOLS)
    viewer, operator = ToolView(registry, role=Role.VIEWER), ToolView(registry)

    assert "read_file" in names(viewer)
    assert not {"write_file", "bash", "http_post", "undo"} & set(names(viewer))
    assert {"write_file", "bash"} <= set(names(operator))
    assert viewer.find("write_file") is None
    assert viewer.find("read_file") is not None


@pytest.mark.parametrize("name", ["bash", "bash_command", "shell", "mcp__toolreeve_builtin__bash"])
def test_what_is_not_in_the_toolset_is_not_found_by_any_of_its_names(name: str) -> None:
    view = ToolView(ToolRegistry(TOOLS), toolset=read_toolset("file"))

    assert view.find(name) is None


def test_hidden_tools_are_neither_listed_nor_found_nor_searched() -> None:
    view = ToolView(ToolRegistry([bound("git__resources/read", hidden=True, server="git"), bound("git__log")]))

    assert names(view) == ["git__log"]
    assert view.find("git__resources/read") is None
    assert [each["name"] for each in view.matching("git resources read", 10)] == ["git__log"]


def test_a_list_is_made_anew_only_when_the_registry_changed() -> None:
    registry = ToolRegistry(TOOLS)
    view = ToolView(registry)
    first = view.page()

    assert view.page() is first
    registry.register(bound("newcomer"))
    assert "newcomer" in names(view)
    assert orjson.loads(view.page().encoded) == list(view.page().tools)
    assert orjson.loads(orjson.dumps({"tools": as_fragment(view.page())}))["tools"] == list(view.page().tools)


def test_a_long_list_comes_in_pages_that_hold_every_tool_once() -> None:
    view = ToolView(ToolRegistry([bound(f"tool_{number:04}") for number in range(2 * PAGE + 7)]))
    seen, cursor = list[str](), None

    while True:
        page = view.page(cursor)
        seen += [str(each["name"]) for each in page.tools]
        cursor = page.next
        if cursor is None:
            break

    assert seen == [f"tool_{number:04}" for number in range(2 * PAGE + 7)]


def test_a_cursor_holds_when_tools_come_and_go_in_between() -> None:
    registry = ToolRegistry([bound(f"tool_{number:04}") for number in range(PAGE + 10)])
    view = ToolView(registry)
    cursor = view.page().next
    registry.unregister("tool_0000")

    assert names(view, cursor=cursor)[0] == f"tool_{PAGE:04}"


@pytest.mark.parametrize("cursor", [7, "", "*", "ÿ", {"a": 1}, "//79", True])
def test_a_cursor_that_we_did_not_give_is_refused_or_harmless(cursor: Any) -> None:
    view = ToolView(ToolRegistry(TOOLS))

    if cursor == "":
        assert names(view, cursor=cursor) == names(view)
    else:
        with pytest.raises(WireError, match="Invalid cursor"):
            view.page(cursor)


def test_made_up_cursors_do_not_fill_the_memory() -> None:
    view = ToolView(ToolRegistry([bound(f"tool_{number:04}") for number in range(400)]))

    for number in range(400):
        view.page(write_cursor(f"tool_{number:04}"))

    assert len(view._pages) <= 50


def test_when_tools_are_searched_for_only_those_named_outright_are_listed() -> None:
    view = ToolView(ToolRegistry(TOOLS), toolset=read_toolset("read_file,web"), search=True)

    assert names(view) == ["read_file"]
    assert [each["name"] for each in view.matching("fetch a url", 1)] == ["fetch_url"]
    assert "bash" not in [each["name"] for each in view.matching("run a shell command with bash", 50)]
    assert view.find("fetch_url") is not None
    assert view.find("bash") is None


def test_a_tool_may_be_shown_under_another_of_its_names() -> None:
    view = ToolView(ToolRegistry(TOOLS), toolset=read_toolset("bash"), aliases={"bash": "bash_command"})

    assert names(view) == ["bash_command"]
    assert view.find("bash_command") is not None


def test_a_tool_of_ours_tells_its_schemas_and_how_dangerous_it_is() -> None:
    by_name = {each["name"]: each for each in ToolView(ToolRegistry(TOOLS)).page().tools}

    assert by_name["read_file"]["inputSchema"]["required"] == ["path"]
    assert by_name["read_file"]["outputSchema"]["type"] == "object"
    assert by_name["read_file"]["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert by_name["delete_file"]["annotations"]["destructiveHint"] is True
    assert by_name["fetch_url"]["annotations"]["openWorldHint"] is True
    assert by_name["bash"]["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }


DECLARED: dict[str, Any] = {
    "name": "push",
    "title": "Push",
    "description": "Push it.",
    "inputSchema": {"type": "object", "$defs": {"a": {"type": "string"}}},
    "annotations": {
        "title": "Push",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
        "vendorHint": 7,
    },
    "icons": [{"src": "data:,"}],
    "_meta": {"vendor": True},
}


def declared(*, trusted: bool, **known: Any) -> ToolSpec:
    return ToolSpec(
        name="git__push",
        description="Push it.",
        input=DECLARED["inputSchema"],
        declared=DECLARED,
        server="git",
        trusted=trusted,
        **known,
    )


def test_an_upstream_tool_keeps_its_definition_under_our_name() -> None:
    told = describe(declared(trusted=True, read_only=True, idempotent=True, danger=DangerLevel.LOW), "git__push")

    assert told == DECLARED | {"name": "git__push"}


def test_a_server_that_is_not_trusted_cannot_call_its_tools_harmless() -> None:
    told = describe(declared(trusted=False, danger=DangerLevel.HIGH), "git__push")

    assert told["annotations"] == {
        "title": "Push",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
        "vendorHint": 7,
    }
    assert told["_meta"] == {"vendor": True}


def test_what_a_server_did_not_claim_is_not_claimed_for_it() -> None:
    spec = ToolSpec(name="a__b", description="", input={}, declared={"name": "b", "inputSchema": {}}, server="a")

    assert describe(spec, "a__b") == {"name": "a__b", "inputSchema": {}}


def test_the_default_list_is_short_and_everything_can_be_called() -> None:
    view = ToolView(ToolRegistry(TOOLS))
    listed = view.page().tools
    seen_by_models = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in listed]

    assert len(listed) <= 20
    assert len(orjson.dumps(seen_by_models)) / 4 <= 3000
    assert all(view.find(each.name) is not None for each in TOOLS)


@pytest.mark.parametrize("words", ["all", "all,-bash", "http"])
def test_a_toolset_that_names_covered_tools_lists_them(words: str) -> None:
    view = ToolView(ToolRegistry(TOOLS), toolset=read_toolset(words))

    assert {"http_get", "http_post"} <= set(names(view))
    assert ("bash" in names(view)) == (words == "all")


def test_own_tools_are_always_listed_whatever_they_are_called() -> None:
    view = ToolView(ToolRegistry([bound("calculate", source="mine"), bound("git__http_get", server="git")]))

    assert names(view) == ["calculate", "git__http_get"]


def test_the_title_of_a_tool_is_declared() -> None:
    assert describe(bound("web_request", title="Web request").spec, "web_request")["title"] == "Web request"
    assert "title" not in describe(bound("web_request").spec, "web_request")
