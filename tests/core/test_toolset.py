import pytest

from toolreeve.core.errors import ToolreeveError
from toolreeve.core.tool import ToolSpec
from toolreeve.core.toolset import check_toolset, read_toolset
from toolreeve.runtime.builtin import TOOLS


def spec(name: str, server: str | None = None, category: str = "mcp") -> ToolSpec:
    return ToolSpec(name=name, description="", input={}, server=server, category=category)


SPECS = [each.spec for each in TOOLS] + [spec("git__log", "git"), spec("git__push", "git"), spec("plain", "bare")]


def chosen(words: str) -> list[str]:
    toolset = read_toolset(words)
    check_toolset(toolset, SPECS)
    return sorted(each.name for each in SPECS if toolset.includes(each))


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("web", ["extract_links", "fetch_url"]),
        ("read_file,file_exists", ["file_exists", "read_file"]),
        ("git__*", ["git__log", "git__push"]),
        ("git", ["git__log", "git__push"]),
        ("git,-git__push", ["git__log"]),
        ("bare", ["plain"]),
        ("http_*,-http_delete,-http_p*", ["http_get", "http_request"]),
        ("bash_command", ["bash"]),
        ("shell", ["bash", "execute_command"]),
        (" commands , ", ["bash", "execute_command"]),
        ("mcp__toolreeve_builtin__bash", ["bash"]),
    ],
)
def test_words_choose_by_category_server_name_and_glob(words: str, names: list[str]) -> None:
    assert chosen(words) == names


@pytest.mark.parametrize("spelling", ["file", "files", "filesystem", "fs"])
def test_a_category_may_be_spelled_as_people_do(spelling: str) -> None:
    assert "read_file" in chosen(spelling)
    assert "http_get" not in chosen(spelling)


def test_nothing_chosen_is_everything_and_what_is_taken_away_stays_away() -> None:
    everything = {each.name for each in SPECS}

    assert {each.name for each in SPECS if read_toolset(()).includes(each)} == everything
    assert set(chosen("-shell")) == everything - {"bash", "execute_command"}
    assert chosen("bash,-shell") == []


@pytest.mark.parametrize("words", ["", " ", ",", " , ,", [""], [",", " "]])
def test_a_text_without_a_word_is_refused_and_does_not_show_everything(words: str | list[str]) -> None:
    with pytest.raises(ToolreeveError, match="names no tools\n  fix: name categories"):
        read_toolset(words)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("flie", "file"),
        ("read_fiel", "read_file"),
        ("-delete_fil", "delete_file"),
        ("gti__*", "git__log"),
        ("xyzzy*", "toolreeve tools"),
    ],
)
def test_a_word_that_fits_nothing_is_an_error_that_names_what_is_near(words: str, near: str) -> None:
    with pytest.raises(ToolreeveError, match=near):
        chosen(words)


@pytest.mark.parametrize("words", ["late", "late__*", "late__tool", "-late__tool"])
def test_a_server_that_is_not_there_yet_may_be_named(words: str) -> None:
    check_toolset(read_toolset(words), SPECS, ["late"])


def test_any_name_may_come_from_a_server_without_a_prefix() -> None:
    check_toolset(read_toolset("whatever"), SPECS, [""])


def test_patterns_come_as_a_list_as_well() -> None:
    assert read_toolset(["file,web", "-read_file"]) == read_toolset("file,web,-read_file")
