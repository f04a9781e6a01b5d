import asyncio
import os
from pathlib import Path

from tests.scripted.place import Place, yes
from toolreeve import Toolreeve
from toolreeve.config import load
from toolreeve.config.trust import TrustedFolders

SAY = "tools:\n  say:\n    script: echo {}\n    danger: safe\n"


def write(path: Path, text: str) -> None:
    """Written so that the change shows, however quickly one follows another."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


async def test_a_bad_file_keeps_none_of_the_others_from_loading(place: Place, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("tools:\n  broken:\n    scrpt: x\n")
    place.tools.write_text(SAY.format("hello"))

    async with place.reeve(settings=place.settings(tool_files=(str(bad), str(place.tools)))) as reeve:
        result = await reeve.call("say")

    assert result.output == "hello\n"
    assert [(problem.source, problem.line) for problem in reeve.problems] == [(str(bad), 2)] * len(reeve.problems)
    assert "broken" not in reeve.tools


async def test_a_name_that_is_taken_is_told_with_both_sources(place: Place) -> None:
    async with place.declares("tools:\n  read_file:\n    script: echo x\n") as reeve:
        pass

    assert "is the name of a tool of" in str(reeve.problems[0])
    assert str(place.tools) in str(reeve.problems[0])


async def test_another_spelling_of_a_builtin_tool_is_no_name(place: Place) -> None:
    assert "means another tool: 'bash'" in str(place.declares("tools:\n  shell:\n    script: x\n").problems[0])


async def test_a_changed_file_is_read_again(place: Place) -> None:
    async with place.declares(SAY.format("one")) as reeve:
        first = await reeve.call("say")
        write(place.tools, SAY.format("two") + "  more:\n    script: echo more\n    danger: safe\n")
        (change,) = reeve.reload()
        second, more = await reeve.call("say"), await reeve.call("more")

    assert [first.output, second.output, more.output] == ["one\n", "two\n", "more\n"]
    assert (change.added, change.changed, change.removed) == (("more",), ("say",), ())


async def test_a_tool_that_is_no_longer_declared_is_gone(place: Place) -> None:
    async with place.declares(SAY.format("one")) as reeve:
        write(place.tools, "tools:\n  other:\n    script: echo x\n")
        reeve.reload()
        result = await reeve.call("say")

    assert result.error is not None
    assert result.error.code == "E_TOOL_NOT_FOUND"


async def test_a_file_that_becomes_wrong_keeps_its_tools_and_says_so(place: Place) -> None:
    async with place.declares(SAY.format("one")) as reeve:
        write(place.tools, "tools:\n  say:\n    script: eval {{x}}\n")
        (change,) = reeve.reload()
        kept = await reeve.call("say")
        write(place.tools, SAY.format("two"))
        reeve.reload()
        mended = await reeve.call("say")

    assert (kept.output, mended.output) == ("one\n", "two\n")
    assert "would be evaluated" in str(change.problems[0])
    assert reeve.problems == ()


async def test_answers_of_the_old_tool_are_forgotten(place: Place) -> None:
    cached = SAY + "    caching: {{ttl: 60}}\n"
    async with place.declares(cached.format("one")) as reeve:
        await reeve.call("say")
        write(place.tools, cached.format("two"))
        reeve.reload()
        result = await reeve.call("say")

    assert (result.output, result.meta.cached) == ("two\n", False)


async def test_a_change_is_found_by_itself_and_told_on_the_bus(place: Place) -> None:
    async with place.declares(SAY.format("one"), approve=yes) as reeve, reeve.bus.subscribe() as events:
        write(place.tools, SAY.format("two"))
        async with asyncio.timeout(20):
            async for event in events:
                if event.event == "tool_changed":
                    break

        assert event.data["changed"] == ["say"]
        assert (await reeve.call("say")).output == "two\n"


async def test_a_projects_file_counts_only_as_it_was_when_it_was_trusted(place: Place) -> None:
    tools = place.workspace / "tools.yaml"
    tools.write_text(SAY.format("trusted"))
    (place.workspace / "toolreeve.toml").write_text('tool_files = ["tools.yaml"]\n')
    environ = {"HOME": str(place.state), "XDG_STATE_HOME": str(place.state)}
    untrusted = load(environ=environ, cwd=place.workspace)
    assert untrusted.code is not None
    TrustedFolders(place.state / "toolreeve").add(place.workspace, untrusted.code.digest)

    async with Toolreeve(settings=load(environ=environ, cwd=place.workspace)) as reeve:
        write(tools, SAY.format("attacked"))
        reeve.reload()
        result = await reeve.call("say")

    assert untrusted.settings.tool_files == ()
    assert result.output == "trusted\n"
    assert "has changed since it was trusted" in str(reeve.problems[0])
