import asyncio
import os
from pathlib import Path

from tests.scripted.scripted_world import ScriptedWorld, yes
from toolreeve import Toolreeve
from toolreeve.config import load
from toolreeve.config.trust import TrustedFolders

SAY = "tools:\n  say:\n    script: echo {}\n    danger: safe\n"


def write(path: Path, text: str) -> None:
    """Written so that the change shows, however quickly one follows another."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


async def test_a_bad_file_keeps_none_of_the_others_from_loading(scripted: ScriptedWorld, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("tools:\n  broken:\n    scrpt: x\n")
    scripted.tools.write_text(SAY.format("hello"))

    async with scripted.reeve(settings=scripted.settings(tool_files=(str(bad), str(scripted.tools)))) as reeve:
        result = await reeve.call("say")

    assert result.output == "hello\n"
    assert [(problem.source, problem.line) for problem in reeve.problems] == [(str(bad), 2)] * len(reeve.problems)
    assert "broken" not in reeve.tools


async def test_a_name_that_is_taken_is_reported_with_both_sources(scripted: ScriptedWorld) -> None:
    async with scripted.with_tools("tools:\n  read_file:\n    script: echo x\n") as reeve:
        pass

    assert "is already the name of a tool of" in str(reeve.problems[0])
    assert str(scripted.tools) in str(reeve.problems[0])


async def test_another_spelling_of_a_builtin_tool_is_no_name(scripted: ScriptedWorld) -> None:
    assert "is an alias of the tool 'bash'" in str(scripted.with_tools("tools:\n  shell:\n    script: x\n").problems[0])


async def test_a_changed_file_is_read_again(scripted: ScriptedWorld) -> None:
    async with scripted.with_tools(SAY.format("one")) as reeve:
        first = await reeve.call("say")
        write(scripted.tools, SAY.format("two") + "  more:\n    script: echo more\n    danger: safe\n")
        (change,) = reeve.reload()
        second, more = await reeve.call("say"), await reeve.call("more")

    assert [first.output, second.output, more.output] == ["one\n", "two\n", "more\n"]
    assert (change.added, change.changed, change.removed) == (("more",), ("say",), ())


async def test_a_tool_that_is_no_longer_declared_is_gone(scripted: ScriptedWorld) -> None:
    async with scripted.with_tools(SAY.format("one")) as reeve:
        write(scripted.tools, "tools:\n  other:\n    script: echo x\n")
        reeve.reload()
        result = await reeve.call("say")

    assert result.error is not None
    assert result.error.code == "E_TOOL_NOT_FOUND"


async def test_a_file_that_becomes_wrong_keeps_its_tools_and_says_so(scripted: ScriptedWorld) -> None:
    async with scripted.with_tools(SAY.format("one")) as reeve:
        write(scripted.tools, "tools:\n  say:\n    script: eval {{x}}\n")
        (change,) = reeve.reload()
        kept = await reeve.call("say")
        write(scripted.tools, SAY.format("two"))
        reeve.reload()
        mended = await reeve.call("say")

    assert (kept.output, mended.output) == ("one\n", "two\n")
    assert "would be evaluated" in str(change.problems[0])
    assert reeve.problems == ()


async def test_answers_of_the_old_tool_are_forgotten(scripted: ScriptedWorld) -> None:
    cached = SAY + "    caching: {{ttl: 60}}\n"
    async with scripted.with_tools(cached.format("one")) as reeve:
        await reeve.call("say")
        write(scripted.tools, cached.format("two"))
        reeve.reload()
        result = await reeve.call("say")

    assert (result.output, result.meta.cached) == ("two\n", False)


async def test_a_change_is_found_by_itself_and_reported_on_the_bus(scripted: ScriptedWorld) -> None:
    async with scripted.with_tools(SAY.format("one"), approve=yes) as reeve, reeve.bus.subscribe() as events:
        write(scripted.tools, SAY.format("two"))
        async with asyncio.timeout(20):
            async for event in events:
                if event.event == "tool_changed":
                    break

        assert event.data["changed"] == ["say"]
        assert (await reeve.call("say")).output == "two\n"


async def test_a_projects_file_counts_only_as_it_was_when_it_was_trusted(scripted: ScriptedWorld) -> None:
    tools = scripted.workspace / "tools.yaml"
    tools.write_text(SAY.format("trusted"))
    (scripted.workspace / "toolreeve.toml").write_text('tool_files = ["tools.yaml"]\n')
    environ = {"HOME": str(scripted.state), "XDG_STATE_HOME": str(scripted.state)}
    untrusted = load(environ=environ, cwd=scripted.workspace)
    assert untrusted.code is not None
    TrustedFolders(scripted.state / "toolreeve").add(scripted.workspace, untrusted.code.digest)

    async with Toolreeve(settings=load(environ=environ, cwd=scripted.workspace)) as reeve:
        write(tools, SAY.format("attacked"))
        reeve.reload()
        result = await reeve.call("say")

    assert untrusted.settings.tool_files == ()
    assert result.output == "trusted\n"
    assert "has changed since it was trusted" in str(reeve.problems[0])
