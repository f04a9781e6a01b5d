"""Approval channel on the terminal.

It asks one question at a time, has no default answer, and ignores input typed before the question.
"""

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolreeve.approval.always_rule import rule_text
from toolreeve.approval.channel import JudgeEdit
from toolreeve.approval.channels.tty import Console, find_terminal, open_console
from toolreeve.approval.prompt import coloured, describe, list_choices
from toolreeve.approval.request import Answer, Request, Scope
from toolreeve.core.errors import ToolError
from toolreeve.core.visible import one_line

LONGEST_DAYS = 3650


class TerminalChannel:
    """`device` is the terminal, by default the controlling one. `editor` is the command that edits a file; without it,
    changed arguments are typed as a line of JSON. `session` says whether the session goes on after the call: only then
    is a yes for the session offered. `approver` is the user at the terminal. With a clock (`now`), a rule can be
    written for a number of days."""

    name = "terminal"

    def __init__(
        self,
        *,
        device: str | None = None,
        editor: Sequence[str] = (),
        session: bool = True,
        colours: bool = False,
        approver: str = "",
        now: Callable[[], float] | None = None,
    ) -> None:
        self.approver = approver
        self.judge_edit: JudgeEdit | None = None
        self._now = now
        self._device = device
        self._colours = colours
        self._editor = tuple(editor)
        self._session = session
        self._turn = asyncio.Lock()

    def available(self) -> bool:
        """Whether there is a terminal to ask on."""
        return find_terminal(self._device) is not None

    async def ask(self, request: Request) -> Answer:
        """Show the request and wait for the answer."""
        async with self._turn:
            device = find_terminal(self._device)
            if device is None:
                raise RuntimeError("the terminal is no longer available")
            with open_console(device) as console:
                try:
                    dialogue = _Dialogue(
                        console, request, self._editor, session=self._session, colours=self._colours, now=self._now
                    )
                    dialogue.judge_edit = self.judge_edit
                    return await dialogue.run()
                except asyncio.CancelledError as gone:
                    why = one_line(str(gone.args[0])) if gone.args else "answered elsewhere, or timed out"
                    console.say_now(f"\n(withdrawn: {why})\n")
                    raise


class _Dialogue:
    """Repeats one question until it is answered."""

    def __init__(
        self,
        console: Console,
        request: Request,
        editor: Sequence[str],
        *,
        session: bool,
        colours: bool,
        now: Callable[[], float] | None,
    ) -> None:
        self.judge_edit: JudgeEdit | None = None
        self._now = now
        self._console = console
        self._request = request
        self._editor = editor
        self._session = session
        self._paint = coloured if colours else str

    async def run(self) -> Answer:
        await self._console.say(f"\n{self._paint(describe(self._request))}\n")
        while True:
            if (answer := await self._read_choice(await self._choose())) is not None:
                return answer

    async def _choose(self) -> str:
        session = "  [s] session" if self._session and self._request.approvals == 1 else ""
        always = "  [a] always" if self._request.lasting else ""
        some = "  [k] keep some" if self._has_changes else ""
        known = "  [r] once, and known" if self._request.knowable else ""
        edit = "" if self._request.tried else "  [e] edit"
        return await self._question(f"Approve? [y] once{known}{session}{always}{some}  [n] no{edit}  [?] details: ")

    @property
    def _has_changes(self) -> bool:
        """Whether the question is about several changes that a command made on trial."""
        return self._request.tried and len(self._request.effects) > 1

    async def _read_choice(self, choice: str) -> Answer | None:
        """None if the choice is not an answer yet."""
        request = self._request
        match choice.lower():
            case "y" | "yes":
                return request.allow()
            case "r" if request.knowable:
                return request.allow(know=True)
            case "s" | "session" if self._session and request.approvals == 1:
                covered = await self._choose_coverage()
                return None if covered is None else request.allow(scope=Scope.SESSION, choice=covered)
            case "a" | "always" if request.lasting:
                return await self._always()
            case "k" | "keep" if self._has_changes:
                return await self._keep_some()
            case "n" | "no":
                return request.deny(note=await self._question("Why? (optional, the model reads it): "))
            case "e" | "edit" if not request.tried:
                return await self._edit()
            case "?":
                await self._console.say(f"{self._paint(describe(request, whole=True))}\n")
            case _:
                await self._console.say("Please answer with one of the letters.\n")
        return None

    async def _question(self, text: str) -> str:
        self._console.discard_typed()
        await self._console.say(text)
        return await self._console.line()

    async def _agrees(self, text: str) -> bool:
        return (await self._question(f"{text} [y/n]: ")).lower() in ("y", "yes")

    async def _choose_coverage(self) -> int | None:
        """The number of what the yes shall cover, from 0; None if the line was empty."""
        choices = self._request.choices
        if len(choices) < 2:
            return 0
        listed = "\n".join(list_choices(self._request))
        await self._console.say(f"It may cover:\n{listed}\n")
        while answer := await self._question(f"Which? [1-{len(choices)}, Enter to go back]: "):
            if answer.isdecimal() and 1 <= int(answer) <= len(choices):
                return int(answer) - 1
            await self._console.say("Please answer with one of the numbers.\n")
        return None

    async def _keep_some(self) -> Answer | None:
        effects = self._request.effects
        listed = "\n".join(
            f"{number:>5}  {each.kind} {one_line(each.target)}" for number, each in enumerate(effects, 1)
        )
        await self._console.say(f"{listed}\n")
        while answer := await self._question("Keep which? [such as 1 3-5, Enter to go back]: "):
            if chosen := _read_numbers(answer, len(effects)):
                return self._request.allow(only=[effects[number - 1].target for number in chosen])
            await self._console.say("Please answer with some of the numbers.\n")
        return None

    async def _always(self) -> Answer | None:
        choice = await self._choose_coverage()
        if choice is None:
            return None
        rule = rule_text(self._request.choices[choice].rule) if choice else self._request.lasting
        await self._console.say(f"This rule would be written:\n  {one_line(rule)}\n")
        days = await self._question(f"Write it and allow? [y/n{', or for how many days' if self._now else ''}]: ")
        if days.lower() in ("y", "yes"):
            return self._request.allow(scope=Scope.ALWAYS, choice=choice)
        if self._now is not None and days.isdecimal() and 0 < int(days) <= LONGEST_DAYS:
            expires = self._now() + int(days) * 86400.0
            return self._request.allow(scope=Scope.ALWAYS, choice=choice, expires=expires)
        return None

    async def _edit(self) -> Answer | None:
        try:
            if self._editor:
                text = await self._edit_file()
            else:
                text = await self._question('What to change, as JSON such as {"path": "b.txt"} (or set EDITOR): ')
            args = json.loads(text)
            if not self._editor and isinstance(args, dict):
                args = {**self._request.args, **args}
        except (OSError, ValueError, RecursionError) as problem:
            await self._console.say(f"Invalid arguments: {one_line(str(problem))}\n")
            return None
        if not isinstance(args, dict):
            await self._console.say("The arguments must be a JSON object.\n")
            return None
        edited = await self._judge(args)
        if edited is None:
            return None
        if edited.danger > self._request.danger:
            await self._console.say(f"More dangerous now: {edited.danger.value}.\n")
        await self._console.say(f"{self._paint(describe(edited, whole=True))}\n")
        agreed = await self._agrees("Allow it with these arguments?")
        return self._request.allow(args=dict(edited.args)) if agreed else None

    async def _judge(self, args: Mapping[str, Any]) -> Request | None:
        """The question about the edited call, with its effects and change; None if it cannot be allowed."""
        if self.judge_edit is None:
            return replace(self._request, args=args, effects=(), preview="", lasting="", choices=())
        try:
            return await self.judge_edit(self._request, args)
        except ToolError as problem:
            await self._console.say(f"Not possible: {one_line(problem.message)}\n")
            return None

    async def _edit_file(self) -> str:
        """The text as the editor saved it; the file is always removed."""
        descriptor, name = tempfile.mkstemp(prefix="toolreeve-", suffix=".json")
        path = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(dict(self._request.args), file, indent=2, ensure_ascii=False)
            await _run_editor([*self._editor, name], self._console.device)
            return path.read_text(encoding="utf-8", errors="replace")
        finally:
            path.unlink(missing_ok=True)


def _read_numbers(text: str, most: int) -> list[int]:
    """The numbers of a list such as `1 3-5`, from 1; empty if it is not one."""
    found: set[int] = set()
    for word in text.replace(",", " ").split():
        first, dash, last = word.partition("-")
        ends = (first, last if dash else first)
        if not all(end.isdecimal() and 1 <= int(end) <= most for end in ends):
            return []
        found |= set(range(int(ends[0]), int(ends[1]) + 1))
    return sorted(found)


async def _run_editor(command: Sequence[str], device: str) -> None:
    """The editor gets its own descriptor: ours is non-blocking, which editors do not expect."""
    terminal = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=terminal, stdout=terminal, stderr=terminal)
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    finally:
        os.close(terminal)
