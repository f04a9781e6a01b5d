"""Real terminals: a pty, and processes that have one as their controlling terminal."""

import asyncio
import contextlib
import os
import pty
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.approval.people import ASK, Person, call, open_grants, writes
from tests.world import World
from toolreeve.approval.always_rule import AlwaysRule
from toolreeve.approval.broker import Broker
from toolreeve.approval.channels.terminal import TerminalChannel
from toolreeve.approval.request import Approval, Choice, Scope
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.labels import Provenance

DEADLINE = 20.0


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


class Screen:
    """The person's side of a terminal."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.device = os.ttyname(self.slave)
        self.text = ""

    async def shows(self, text: str) -> str:
        """Wait until the text appears, and take all up to it off the screen."""
        try:
            async with asyncio.timeout(DEADLINE):
                while text not in self.text:
                    await self._more()
        except TimeoutError:
            raise AssertionError(f"{text!r} did not show: {self.text[-2000:]}") from None
        before, _, self.text = self.text.partition(text)
        return before + text

    async def _more(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self.master, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self.master)
        with contextlib.suppress(BlockingIOError):
            self.text += os.read(self.master, 65536).decode(errors="replace")

    def types(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> None:
        for descriptor in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def screen() -> Iterator[Screen]:
    opened = Screen()
    yield opened
    opened.close()


@contextlib.asynccontextmanager
async def asking(screen: Screen, *others: Any, **options: Any) -> AsyncIterator["asyncio.Task[Approval]"]:
    channel = TerminalChannel(device=screen.device, editor=options.pop("editor", ()))
    action = options.pop("action", None) or call(effects=writes)
    broker = Broker([channel, *others], now=lambda: 0.0, timeout=DEADLINE, **options)
    task = asyncio.create_task(broker.settle(action, ASK))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_y_allows_once_and_everything_was_shown(screen: Screen) -> None:
    async with asking(screen) as settling:
        shown = await screen.shows("details: ")
        screen.types("y\n")

        assert (await settling).scope is Scope.ONCE
        assert "Tool 'write_file' (danger=medium) requests approval:" in shown
        assert "path: a.txt" in shown
        assert "[a] always" not in shown


async def test_the_question_fits_a_terminal_of_80_columns(screen: Screen) -> None:
    async def remember(_: AlwaysRule) -> str:
        return "policy.yaml:1"

    async with asking(screen, remember=remember):
        shown = await screen.shows("details: ")

        assert len(shown.splitlines()[-1]) < 80


async def test_after_a_trial_other_arguments_are_not_offered(screen: Screen) -> None:
    tried = call(effects=writes)
    tried = tried.after_trial(tried.effects, "digest")
    async with asking(screen, action=tried) as settling:
        shown = await screen.shows("details: ")
        assert "[e] edit" not in shown
        screen.types("e\n")
        await screen.shows("one of the letters")
        await screen.shows("details: ")
        screen.types("y\n")

        assert (await settling).args is None


async def test_s_allows_for_the_session(screen: Screen, tmp_path: Path) -> None:
    async with open_grants(tmp_path) as grants, asking(screen, grants=grants) as settling:
        await screen.shows("details: ")
        screen.types("s\n")

        assert (await settling).scope is Scope.SESSION


async def test_r_allows_once_and_keeps_the_recipient_as_known(screen: Screen) -> None:
    origin = Provenance(parameter="to", value="eve@x.example", kind="destination", why="nobody vouches", knowable=True)
    async with asking(screen, facts=lambda _: {"provenance": [origin.to_dict()]}) as settling:
        shown = await screen.shows("details: ")
        screen.types("r\n")

        assert (await settling).know
        assert "to: eve@x.example - nobody vouches" in shown
    async with asking(screen) as settling:
        assert "[r]" not in await screen.shows("details: ")
        screen.types("r\n")
        await screen.shows("one of the letters")


async def test_k_keeps_some_of_the_changes_of_a_trial_by_number(screen: Screen) -> None:
    action = call().after_trial([Effect(EffectKind.WRITE, f"/w/{name}") for name in "abcde"], "manifest")
    broker = Broker([TerminalChannel(device=screen.device)], now=lambda: 0.0, timeout=DEADLINE)
    settling = asyncio.create_task(broker.settle(action, ASK))
    await screen.shows("[k] keep some")
    await screen.shows("details: ")
    screen.types("k\n")
    listed = await screen.shows("go back]: ")
    for wrong in ("0", "6", "2-", "all"):
        screen.types(f"{wrong}\n")
        await screen.shows("Please answer with some of the numbers.")
        await screen.shows("go back]: ")
    screen.types("1, 3-4\n")

    approval = await settling

    assert "2  write /w/b" in listed
    assert (approval.only, approval.scope) == (("/w/a", "/w/c", "/w/d"), Scope.ONCE)


async def test_what_the_yes_covers_is_chosen_by_number_and_its_rule_is_shown(screen: Screen) -> None:
    written: list[AlwaysRule] = []

    async def remember(rule: AlwaysRule) -> str:
        written.append(rule)
        return "policy.yaml:1"

    folder = Choice("changes below docs/", {"effect": ["write"], "target": {"under": ["/w/docs"]}})
    async with asking(screen, remember=remember, offers=lambda _: [folder]) as settling:
        await screen.shows("details: ")
        screen.types("a\n")
        shown = await screen.shows("Which? [1-2, Enter to go back]: ")
        assert "1  exactly this call" in shown
        assert "2  changes below docs/" in shown
        screen.types("3\n")
        await screen.shows("one of the numbers")
        await screen.shows("Enter to go back]: ")
        screen.types("\n")
        await screen.shows("details: ")
        screen.types("a\n")
        await screen.shows("Which? [1-2, Enter to go back]: ")
        screen.types("2\n")
        assert '"under":["/w/docs"]' in await screen.shows("[y/n]: ")
        screen.types("y\n")

        assert (await settling).scope is Scope.ALWAYS
        assert [rule["target"] for rule in written] == [{"under": ["/w/docs"]}]


async def test_n_asks_for_a_note_that_reaches_the_model(screen: Screen) -> None:
    async with asking(screen) as settling:
        await screen.shows("details: ")
        screen.types("n\n")
        await screen.shows("Why?")
        screen.types("not on a Friday\n")

        with pytest.raises(ToolError, match="not on a Friday") as raised:
            await settling
        assert raised.value.code is ErrorCode.APPROVAL_DENIED


async def test_always_shows_the_rule_and_writes_it_only_when_agreed(screen: Screen) -> None:
    written: list[AlwaysRule] = []

    async def remember(rule: AlwaysRule) -> str:
        written.append(rule)
        return "policy.yaml:1"

    async with asking(screen, remember=remember) as settling:
        await screen.shows("[a] always")
        await screen.shows("details: ")
        screen.types("a\n")
        assert '"one_of":["/w/a.txt"]' in await screen.shows("[y/n]: ")
        screen.types("n\n")
        await screen.shows("details: ")
        assert written == []
        screen.types("a\n")
        await screen.shows("[y/n]: ")
        screen.types("y\n")

        assert (await settling).scope is Scope.ALWAYS
        assert len(written) == 1


@pytest.mark.parametrize("answer", ["", "Y E S", "maybe", "yy", "1", "true", "a", "\x1b[A"])
async def test_anything_else_is_asked_again(screen: Screen, answer: str) -> None:
    async with asking(screen) as settling:
        await screen.shows("details: ")
        screen.types(f"{answer}\n")
        await screen.shows("Please answer")
        await screen.shows("details: ")
        assert not settling.done()


async def test_what_was_typed_before_the_question_is_no_answer(screen: Screen) -> None:
    screen.types("y\ny\ny\n")
    async with asking(screen) as settling:
        await screen.shows("details: ")
        screen.types("n\n")
        await screen.shows("Why?")
        screen.types("\n")

        with pytest.raises(ToolError) as raised:
            await settling
        assert raised.value.code is ErrorCode.APPROVAL_DENIED


async def test_a_pasted_yes_after_a_wrong_answer_does_not_count(screen: Screen) -> None:
    async with asking(screen) as settling:
        await screen.shows("details: ")
        screen.types("what is this\ny\n")
        await screen.shows("Please answer")
        await screen.shows("details: ")
        screen.types("?\n")
        await screen.shows("details: ")
        assert not settling.done()


async def test_arguments_are_edited_as_json_and_shown_again(screen: Screen) -> None:
    async with asking(screen) as settling:
        await screen.shows("details: ")
        screen.types("e\n")
        await screen.shows("EDITOR): ")
        screen.types("{not json\n")
        await screen.shows("Invalid arguments")
        await screen.shows("details: ")
        screen.types("e\n")
        await screen.shows("EDITOR): ")
        screen.types('{"path": "safe.txt"}\n')
        assert "path: safe.txt" in await screen.shows("[y/n]: ")
        screen.types("y\n")

        assert (await settling).args == {"path": "safe.txt", "content": "x"}


async def test_an_edit_is_judged_at_once_and_shown_with_its_effects_and_change(screen: Screen, world: World) -> None:
    (world.workspace / "b.txt").write_text("old\n")
    async with world.reeve(approve=TerminalChannel(device=screen.device)) as reeve:
        calling = asyncio.create_task(reeve.call("write_file", path="a.txt", content="new\n"))
        for wrong in ('{"path": ["x"]}', '{"nonsense": 1}', '{"path": "../../etc/x"}'):
            await screen.shows("details: ")
            screen.types("e\n")
            await screen.shows("EDITOR): ")
            screen.types(f"{wrong}\n")
            await screen.shows("Not possible: ")
        await screen.shows("details: ")
        screen.types("e\n")
        await screen.shows("EDITOR): ")
        screen.types('{"path": "b.txt"}\n')
        shown = await screen.shows("[y/n]: ")
        screen.types("y\n")
        result = await calling

    assert result.success
    assert f"write {world.workspace}/b.txt" in shown
    assert all(each in shown for each in ("-old", "+new"))
    assert (world.workspace / "b.txt").read_text() == "new\n"
    assert not (world.workspace / "a.txt").exists()


async def test_an_editor_edits_the_arguments_and_leaves_no_file(screen: Screen, tmp_path: Path) -> None:
    script = tmp_path / "edit.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "args = json.loads(file.read_text())\n"
        "assert sys.stdin.isatty()\n"
        f"pathlib.Path({str(tmp_path / 'seen')!r}).write_text(str(file))\n"
        "file.write_text(json.dumps(args | {'path': input('new path? ')}))\n"
    )
    async with asking(screen, editor=[sys.executable, str(script)]) as settling:
        await screen.shows("details: ")
        screen.types("e\n")
        await screen.shows("new path? ")
        screen.types("b.txt\n")
        await screen.shows("[y/n]: ")
        screen.types("y\n")

        assert (await settling).args == {"path": "b.txt", "content": "x"}
        assert not Path((tmp_path / "seen").read_text()).exists()


async def test_an_editor_that_does_not_start_is_told_and_asked_again(screen: Screen) -> None:
    async with asking(screen, editor=["/no/such/editor"]) as settling:
        await screen.shows("details: ")
        screen.types("e\n")
        await screen.shows("Invalid arguments")
        await screen.shows("details: ")
        assert not settling.done()


async def test_another_channel_answers_first_and_the_terminal_takes_its_question_back(screen: Screen) -> None:
    person = Person()
    async with asking(screen, person) as settling:
        await screen.shows("details: ")
        await person.asked.wait()
        person.say(lambda request: request.allow())

        assert (await settling).by == "person via person"
        await screen.shows("withdrawn")


async def test_questions_are_asked_one_at_a_time(screen: Screen) -> None:
    broker = Broker([TerminalChannel(device=screen.device)], now=lambda: 0.0, timeout=DEADLINE)
    settling = [asyncio.create_task(broker.settle(call(args={"path": f"file{n}"}), ASK)) for n in range(3)]

    for number in range(3):
        shown = await screen.shows("details: ")
        assert f"path: file{number}" in shown
        assert shown.count("requests approval") == 1
        screen.types("y\n")

    assert [(await each).scope for each in settling] == [Scope.ONCE] * 3


async def test_a_closed_terminal_is_no_answer(screen: Screen) -> None:
    async with asking(screen) as settling:
        await screen.shows("details: ")
        screen.types("\x04")

        with pytest.raises(ToolError) as raised:
            await settling
        assert raised.value.code is ErrorCode.PERMISSION


async def test_the_loop_runs_on_while_a_person_thinks(screen: Screen) -> None:
    async with asking(screen) as settling:
        await screen.shows("details: ")
        turns = [await asyncio.sleep(0, turn) for turn in range(100)]
        screen.types("y\n")

        assert (await settling).scope is Scope.ONCE
        assert len(turns) == 100


async def test_a_flood_of_text_is_written_without_holding_up_the_loop(screen: Screen) -> None:
    channel = TerminalChannel(device=screen.device)
    broker = Broker([channel], now=lambda: 0.0, timeout=DEADLINE)
    settling = asyncio.create_task(broker.settle(call(args={"content": "x" * 300_000}), ASK))
    await screen.shows("details: ")
    screen.types("?\n")

    shown = await screen.shows("details: ")

    assert "x" * 300_000 in shown
    screen.types("y\n")
    assert (await settling).scope is Scope.ONCE


@pytest.mark.parametrize("device", ["/dev/null", "/no/such/device"])
def test_what_is_no_terminal_is_not_available(device: str) -> None:
    assert not TerminalChannel(device=device).available()


async def test_the_settings_of_the_terminal_stay_as_they_were(screen: Screen) -> None:
    before = termios.tcgetattr(screen.slave)
    async with asking(screen) as settling:
        await screen.shows("details: ")
        screen.types("y\n")
        await settling

    assert termios.tcgetattr(screen.slave) == before


PROGRAM = """
import asyncio
from tests.approval.people import ASK, call
from toolreeve.approval.broker import Broker
from toolreeve.approval.channels.terminal import TerminalChannel

channel = TerminalChannel()
print("available", channel.available(), flush=True)
if channel.available():
    print("approved by", asyncio.run(Broker([channel], now=lambda: 0.0).settle(call(), ASK)).by, flush=True)
"""
TAKE_TERMINAL = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0); "


async def test_a_process_is_asked_on_its_controlling_terminal_though_its_streams_are_elsewhere(screen: Screen) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        TAKE_TERMINAL + f"exec({PROGRAM!r})",
        str(screen.slave),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        pass_fds=[screen.slave],
    )
    await screen.shows("details: ")
    screen.types("y\n")

    output, _ = await asyncio.wait_for(process.communicate(), DEADLINE)

    assert output.decode().splitlines() == ["available True", "approved by person via terminal"]


async def test_a_process_without_a_terminal_cannot_ask() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )

    output, _ = await asyncio.wait_for(process.communicate(), DEADLINE)

    assert output.decode().splitlines() == ["available False"]


async def test_a_process_in_the_background_of_its_terminal_is_not_stopped_by_asking(screen: Screen) -> None:
    background = TAKE_TERMINAL + (
        "child = os.fork()\n"
        "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, os.WUNTRACED)[1]))\n"
        "os.setpgid(0, 0)\n"
        f"exec({PROGRAM!r})"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        background,
        str(screen.slave),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        pass_fds=[screen.slave],
    )

    output, _ = await asyncio.wait_for(process.communicate(), DEADLINE)

    assert output.decode().splitlines() == ["available False"]
    assert process.returncode == 0
