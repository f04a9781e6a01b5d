"""Attempts to get a call approved that no person approved."""

import asyncio
import json
import math
from typing import Any

import pytest

from tests.approval.people import Person, code
from tests.approval.test_auto_approval import reeve_with as with_policies
from tests.approval.test_governors import ALL_APPROVE
from tests.approval.test_governors import reeve_with as with_governors
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.approval.decision import Decided
from toolreeve.approval.request import Answer, Request, Scope
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.errors import ErrorCode


class Waiting:
    """A call that waits for a person, and its question."""

    def __init__(self, world: World, **args: Any) -> None:
        self._world = world
        self._args = {"path": "a.txt", "content": "x", **args}
        self.person = Person()

    async def __aenter__(self) -> "Waiting":
        self.reeve = await self._world.reeve(approve=self.person).__aenter__()
        self.task = asyncio.create_task(self.reeve.call("write_file", **self._args))
        await self.person.asked.wait()
        (item,) = (await self.reeve.approvals.list()).items
        self.card = await self.reeve.approvals.show(item["id"])
        assert self.card is not None
        return self

    async def decide(self, **terms: Any) -> Any:
        assert self.card is not None
        given = {"answer": "allow", "by": "bea", "digest": self.card["digest"], "dead_time": 0.0, **terms}
        return await self.reeve.approvals.decide(self.card["id"], **given)

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})
        await self.reeve.__aexit__(None, None, None)


@pytest.mark.parametrize(
    "terms",
    [
        {"answer": "ALLOW"},
        {"answer": "allow_always"},
        {"answer": ""},
        {"digest": "0" * 64},
        {"digest": ""},
        {"choice": 99},
        {"choice": -1},
        {"scope": "forever"},
        {"args": {"path": "../outside.txt", "content": "x"}},
        {"args": {"path": "/etc/cron.d/x", "content": "x"}},
        {"args": {"path": ".env", "content": "x"}},
        {"args": {"path": "a.txt", "content": "x", "mode": "0777"}},
        {"args": {"path": ["a.txt"], "content": "x"}},
        {"args": {"path": "b.txt", "content": "x"}, "scope": "session"},
        {"args": {"path": "b.txt", "content": "x"}, "scope": "always"},
        {"keep": ["b.txt"], "scope": "session"},
        {"know": True},
        {"scope": "session", "uses": 0},
        {"scope": "session", "uses": -1},
        {"scope": "session", "expires": math.nan},
        {"by": Principal(user="eve", role=Role.VIEWER)},
    ],
)
async def test_an_answer_that_says_something_else_decides_nothing(world: World, terms: dict[str, Any]) -> None:
    async with Waiting(world) as waiting:
        outcome = await waiting.decide(**terms)
        pending = (await waiting.reeve.approvals.list()).items

    assert not isinstance(outcome, Decided), outcome
    assert len(pending) == 1
    assert not list(world.workspace.iterdir())


async def test_of_many_answers_at_once_one_counts_and_the_call_runs_once(world: World) -> None:
    async with Waiting(world) as waiting:
        answers = [waiting.decide(by=f"p{number}", answer="allow") for number in range(8)]
        outcomes = await asyncio.gather(*answers)
        result = await waiting.task
        late = await waiting.decide(by="late", answer="deny")

    assert sum(isinstance(each, Decided) for each in outcomes) == 1
    assert (result.success, type(late).__name__) == (True, "AlreadyAnswered")


async def test_an_answer_after_the_call_was_cancelled_runs_nothing(world: World) -> None:
    async with Waiting(world) as waiting:
        waiting.task.cancel()
        await asyncio.wait({waiting.task})
        late = await waiting.decide()

    assert type(late).__name__ == "Expired"
    assert not (world.workspace / "a.txt").exists()


async def answered_for_session(world: World, **changes: Any) -> tuple[Toolreeve, list[Request]]:
    asked: list[Request] = []

    async def person(request: Request) -> Answer:
        asked.append(request)
        terms = {"scope": Scope.SESSION, **changes} if len(asked) == 1 else {}
        return request.allow(by="ann", **terms) if len(asked) == 1 else request.deny(by="ann")

    return world.reeve(approve=person), asked


@pytest.mark.parametrize(
    "other",
    [
        {"session": "another"},
        {"principal": Principal(user="eve", role=Role.OPERATOR)},
        {"principal": Principal(user="local", role=Role.ADMIN)},
        {"client": "another client"},
        {"origin": "mcp"},
        {"tool": "delete_file", "args": {"path": "a.txt"}},
        {"args": {"path": "b.txt", "content": "x"}},
        {"args": {"path": "./A.txt", "content": "x"}},
    ],
)
async def test_a_yes_for_the_session_belongs_to_its_holder_and_call(world: World, other: dict[str, Any]) -> None:
    reeve, asked = await answered_for_session(world)
    base: dict[str, Any] = {
        "tool": "write_file",
        "args": {"path": "a.txt", "content": "x"},
        "session": "s",
        "client": "c",
    }
    async with reeve:
        first = await reeve.run(ToolCall(**base))
        same = await reeve.run(ToolCall(**base))
        count = len(asked)
        crossed = await reeve.run(ToolCall(**{**base, **other}))

    assert (first.success, same.success, count) == (True, True, 1)
    assert (crossed.success, len(asked)) == (False, 2)


async def test_a_grant_for_some_uses_is_not_used_more_often_by_calls_at_once(world: World) -> None:
    reeve, _ = await answered_for_session(world, uses=3)
    call: dict[str, Any] = {"tool": "write_file", "args": {"path": "a.txt", "content": "x"}, "session": "s"}
    async with reeve:
        await reeve.run(ToolCall(**call))
        results = await asyncio.gather(*(reeve.run(ToolCall(**call)) for _ in range(8)))

    assert sum(each.success for each in results) == 2


RULED = """
- id: git
  applies_to: [bash]
  parameters: {command_prefix: ["git status", "git log"]}
  decision: {type: approve}
- id: docs
  applies_to: [write_file, delete_file, move_file]
  include_paths: ["docs/**"]
  decision: {type: approve}
"""


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf src",
        "git status && rm -rf src",
        "git status $(rm -rf src)",
        "git status `rm -rf src`",
        "git status\nrm -rf src",
        "git status & rm -rf src",
        "git status | xargs rm -rf",
        "git status <(rm -rf src)",
        "git -c core.fsmonitor='rm -rf src' status",
        "GIT_EXTERNAL_DIFF='rm -rf src' git log -p --ext-diff",
        "git log --output=src/a.py",
        "eval git status; rm -rf src",
        "git statusx || rm -rf src",
        "git\\\n status; rm -rf src",
        "function git { rm -rf src; }; git status",
        "alias git='rm -rf src'; git status",
        "PATH=.:$PATH git status",
    ],
)
async def test_no_command_hides_behind_an_approved_prefix(world: World, command: str) -> None:
    (world.workspace / "src").mkdir()
    (world.workspace / "src/a.py").write_text("x")
    async with with_policies(world, RULED) as reeve:
        result = await reeve.call("bash", command=command)

    assert result.meta.approved_by is None
    assert (world.workspace / "src/a.py").read_text() == "x"


@pytest.mark.parametrize(
    "path",
    [
        "docs/../src/a.py",
        "docs/./../src/a.py",
        "docs//../src/a.py",
        "docs/link",
        "docs/folder/a.py",
        "DOCS/a.py",
        "docsx/a.py",
        "docs",
        "docs/..",
        "ｄocs/a.py",
        "docs\u200b/a.py",
        "docs\\..\\src\\a.py",
        " docs/a.py",
        "/docs/a.py",
        "docs/\n../../src/a.py",
    ],
)
async def test_no_path_passes_for_one_that_a_policy_approves(world: World, path: str) -> None:
    for name in ("docs", "src"):
        (world.workspace / name).mkdir()
    (world.workspace / "src/a.py").write_text("x")
    (world.workspace / "docs/link").symlink_to("../src/a.py")
    (world.workspace / "docs/folder").symlink_to("../src")
    async with with_policies(world, RULED) as reeve:
        result = await reeve.call("write_file", path=path, content="changed")

    assert not result.success, result.meta.approved_by
    assert (world.workspace / "src/a.py").read_text() == "x"


SCRIPTED = """
permission_governors:
  - {{id: script, type: script, command: {command}, timeout_ms: 2000}}
{settings}
"""


@pytest.mark.parametrize(
    "script",
    [
        'echo \'{"status": "approve"}\'; exit 3',
        'echo \'{"status": "approve"}\'; kill -9 $$',
        'echo \'{"status": "approve"}\' >&2',
        'echo \'{"status": "approve"}{"status": "approve"}\'',
        'echo \'{"status": "APPROVE"}\'',
        'echo \'{"status": ["approve"]}\'',
        'echo \'{"status": {"approve": true}}\'',
        'echo \'[{"status": "approve"}]\'',
        "echo '\"approve\"'",
        'printf \'\\357\\273\\277{"status": "approve"}\'',
        'echo checking; echo \'{"status": "approve"}\'',
        'printf \'{"status": "approve", "x": "\'; head -c 2000000 /dev/zero | tr "\\0" x; printf \'"}\'',
        'printf \'{"status": "approve"\'',
        "echo '{\"status\": NaN}'",
        "true",
        'echo \'{"status": "approve"}\'; exec sleep 60',
    ],
)
async def test_no_reply_but_a_plain_one_of_a_program_that_ended_well_approves(world: World, script: str) -> None:
    governors = SCRIPTED.format(command=json.dumps(["/bin/sh", "-c", script]), settings=ALL_APPROVE)
    async with with_governors(world, governors) as reeve:
        result = await reeve.call("write_file", path="a.md", content="x")

    assert (code(result), result.meta.approved_by) == (ErrorCode.PERMISSION, None)
    assert not (world.workspace / "a.md").exists()
