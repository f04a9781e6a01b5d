"""Names, aliases, duplicates, search."""

from typing import Any

import pytest

from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.tool import AnyFunctionTool, tool
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.builtin import TOOLS


def named(name: str, *, category: str = "custom", description: str = "Do.") -> AnyFunctionTool:
    return tool(name=name, category=category, description=description, source=f"module of {name}")(lambda: None)


REGISTRY = ToolRegistry(
    [
        named("read_file", category="file", description="Read a text file."),
        named("write_file", category="file", description="Write a file."),
        named("bash", category="shell", description="Run a command."),
        named("git__log", category="git", description="Show commits."),
        named("odd__tool__name", category="git"),
    ]
)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("read_file", "read_file"),
        ("mcp__toolreeve_builtin__read_file", "read_file"),
        ("toolreeve_builtin__read_file", "read_file"),
        ("fs/read_text_file", "read_file"),
        ("bash_command", "bash"),
        ("mcp__toolreeve_builtin__bash_command", "bash"),
        ("mcp__git__log", "git__log"),
        ("mcp__odd__tool__name", "odd__tool__name"),
    ],
)
def test_every_spelling_leads_to_the_one_tool(spelling: str, name: str) -> None:
    assert REGISTRY.resolve(spelling).spec.name == name
    assert spelling in REGISTRY


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ToolError, match=r"no tool is called 'raed_file' \(did you mean 'read_file'\?\)") as caught:
        REGISTRY.resolve("raed_file")

    assert caught.value.code is ErrorCode.TOOL_NOT_FOUND
    assert caught.value.suggestions[0] == "read_file"


@pytest.mark.parametrize("name", [None, 7, ["read_file"], {}, "x" * 1_000_000])
def test_an_invalid_name_is_reported_briefly(name: Any) -> None:
    with pytest.raises(ToolError) as unknown:
        ToolRegistry().resolve(name)

    assert unknown.value.code is ErrorCode.TOOL_NOT_FOUND
    assert len(unknown.value.message) < 300


def test_a_duplicate_names_both_sources() -> None:
    registry = ToolRegistry([named("a")])

    with pytest.raises(ToolreeveError, match="two tools are called 'a': module of a and elsewhere"):
        registry.register(tool(name="a", source="elsewhere")(lambda: None))


@pytest.mark.parametrize("name", ["", "with space", "naïve", "a" * 200, "bash_command", "mcp__x__y", "tool\u200b"])
def test_a_name_that_could_be_mistaken_is_refused(name: str) -> None:
    with pytest.raises(ToolreeveError):
        ToolRegistry([tool(name=name or " ")(lambda: None)])


def test_listing_by_category() -> None:
    assert REGISTRY.categories == REGISTRY.get_categories() == ["file", "git", "shell"]
    assert [each.spec.name for each in REGISTRY.list_by_category("file")] == ["read_file", "write_file"]
    assert len(REGISTRY.list()) == len(REGISTRY) == 5


def test_search_finds_the_best_first() -> None:
    assert REGISTRY.search("read a file")[0].spec.name == "read_file"
    assert REGISTRY.search("commits")[0].spec.name == "git__log"
    assert REGISTRY.search("zebra") == []


def test_unregistering_makes_room_for_another() -> None:
    registry = ToolRegistry([named("a")])

    registry.unregister("a")
    registry.register(named("a"))

    assert len(registry) == 1
    with pytest.raises(ToolreeveError, match="did you mean 'a'"):
        ToolRegistry([named("a")]).unregister("aa")


def test_the_spelled_out_registration_of_the_documents_works() -> None:
    registry = ToolRegistry()

    def shout(text: str, times: int = 1) -> str:
        return text.upper() * times

    registry.register(
        "shout", shout, "Say it loudly", "voice", {"text": "string", "times": "int (optional, default=1)"}
    )

    spec = registry.resolve("shout").spec
    assert (spec.description, spec.category, spec.input["required"]) == ("Say it loudly", "voice", ["text"])
    with pytest.raises(ToolreeveError, match="no parameter 'volume'"):
        ToolRegistry().register("shout", shout, "Say it", "voice", {"volume": "int"})


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("delete a file", "delete_file"),
        ("deleting files", "delete_file"),
        ("list the files in a folder", "list_directory"),
        ("run the unit tests", "run_tests"),
        ("download a web page", "fetch_url"),
        ("replace text in a file", "edit_file"),
        ("search source code for a regular expression", "search_text"),
        ("send a POST request", "http_post"),
        ("what time is it", "get_datetime"),
    ],
)
def test_a_search_by_intent_finds_the_tool_first(query: str, best: str) -> None:
    assert ToolRegistry(TOOLS).search(query)[0].spec.name == best
