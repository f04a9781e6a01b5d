"""Governors: programs that review calls before people do."""

import asyncio
import json
import sys
from typing import Any

import pytest

from tests.approval import governing
from tests.approval.people import Person, code
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.approval.governors import (
    MAX_FUNCTIONS,
    Governors,
    GovernorSettings,
    GovernorSpec,
    GovernorStatus,
    read_reply,
)
from toolreeve.config import Approval as ApprovalSettings
from toolreeve.config import Network
from toolreeve.core.errors import ErrorCode
from toolreeve.core.http import NO_HTTP
from toolreeve.core.process import Ended, OnOutput, ProcessRequest

APPROVE_MD = "- {id: md, applies_to: [write_file], include_paths: ['*.md'], decision: {type: approve%s}}"
PYTHON = "{id: %s, type: python, command: ['tests.approval.governing:%s']%s}"


def reeve_with(world: World, governors: str, policies: str = "", **options: Any) -> Toolreeve:
    folder = world.state.parent
    (folder / "governors.yaml").write_text(governors)
    (folder / "auto.yaml").write_text(policies)
    approval = ApprovalSettings(
        governors_file=str(folder / "governors.yaml"), auto_approval_file=str(folder / "auto.yaml")
    )
    settings = world.settings(approval=approval, **options.pop("more", {}))
    return world.reeve(settings=settings, **options)


def listed(*functions: str, settings: str = "", more: str = "") -> str:
    lines = "\n".join(f"  - {PYTHON % (name, name, more)}" for name in functions)
    return f"permission_governors:\n{lines}\n{settings}"


ALL_APPROVE = "permission_settings: {auto_decision: all_approve}\n"


async def write(reeve: Toolreeve, path: str = "a.md") -> Any:
    return await reeve.call("write_file", path=path, content="x")


async def test_a_governors_reject_overrides_a_policys_approval(world: World) -> None:
    async with reeve_with(world, listed("approve", "reject"), APPROVE_MD % "") as reeve:
        result = await write(reeve)
        history = await reeve.approvals.history()

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert "refused by governor:reject: not on Fridays" in result.to_text()
    assert not (world.workspace / "a.md").exists()
    (said,) = history["governorFeedback"]
    assert said["phase"] == "permission"
    assert [(each["governorId"], each["status"]) for each in said["results"]] == [
        ("approve", "approve"),
        ("reject", "reject"),
    ]
    assert history["permissionDecisions"][0]["governorsInvolved"] == ["approve", "reject"]


async def test_a_policy_that_skips_governors_stands_alone(world: World) -> None:
    async with reeve_with(world, listed("reject"), APPROVE_MD % ", skipGovernors: true") as reeve:
        result = await write(reeve)

    assert result.meta.approved_by == "policy:md"


async def test_governors_alone_approve_only_if_the_operator_said_so(world: World) -> None:
    async with reeve_with(world, listed("approve")) as reeve:
        asked = await write(reeve)
    async with reeve_with(world, listed("approve", settings=ALL_APPROVE)) as reeve:
        allowed = await write(reeve)

    assert code(asked) is ErrorCode.PERMISSION
    assert allowed.meta.approved_by == "governor:approve"


@pytest.mark.parametrize("other", ["attention", "broken", "senseless", "nested", "endless", "truthy", "missing"])
@pytest.mark.parametrize("policies", ["", APPROVE_MD % ""])
async def test_whatever_is_not_a_plain_approval_goes_to_a_person(world: World, other: str, policies: str) -> None:
    person = Person()
    async with reeve_with(world, listed("approve", other, settings=ALL_APPROVE), policies, approve=person) as reeve:
        calling = asyncio.create_task(write(reeve))
        await person.asked.wait()
        (item,) = (await reeve.approvals.list()).items
        card = await reeve.approvals.show(item["id"])
        person.say(lambda request: request.deny())
        result = await calling

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert card is not None
    assert [each["governorId"] for each in card["governors"][0]["results"]] == ["approve", other]


async def test_a_governor_may_require_a_person_as_well(world: World) -> None:
    governors = listed("approve", settings=ALL_APPROVE, more=", requires_manual: true")
    async with reeve_with(world, governors, APPROVE_MD % "", approve=lambda request: request.allow(by="ann")) as reeve:
        result = await write(reeve)

    assert result.meta.approved_by == "ann"


async def test_after_the_first_reject_no_governor_is_asked_unless_told_so(world: World) -> None:
    async with reeve_with(world, listed("reject", "approve")) as reeve:
        await write(reeve)
        first = (await reeve.approvals.history())["governorFeedback"][0]
        every = "permission_settings: {stop_on_first_reject: false}"
    async with reeve_with(world, listed("reject", "approve", settings=every)) as reeve:
        await write(reeve)
        second = (await reeve.approvals.history())["governorFeedback"][0]

    assert len(first["results"]) == 1
    assert len(second["results"]) == 2


async def test_a_governor_is_told_of_the_call_and_the_policy_and_nothing_else(world: World) -> None:
    governing.SEEN.clear()
    async with reeve_with(world, listed("approve"), APPROVE_MD % "") as reeve:
        await write(reeve)
        session = reeve.session

    (seen,) = governing.SEEN
    assert set(seen) == {"phase", "taskId", "sessionId", "toolCall", "policies"}
    assert (seen["phase"], seen["sessionId"]) == ("permission", session)
    assert seen["toolCall"]["tool"] == "write_file"
    assert seen["toolCall"]["rawInput"]["content"] == "x"
    assert seen["policies"][0]["id"] == "md"


SCRIPT = """import json, sys
said = json.load(sys.stdin)
bad = said["toolCall"]["rawInput"]["path"].endswith("x.md")
try:
    open("left-behind", "w").write("x")
    wrote = "wrote"
except OSError:
    wrote = "could not write"
print(json.dumps({"status": "reject" if bad else "approve", "messages": [wrote]}))
"""


async def test_a_script_runs_in_the_sandbox_where_it_cannot_write(world: World) -> None:
    script = world.workspace / "governor.py"
    script.write_text(SCRIPT)
    command = f"command: ['{sys.executable}', '{script}'], timeout_ms: 60000"
    governors = f"permission_governors:\n  - {{id: s, type: script, {command}}}\n{ALL_APPROVE}"
    async with reeve_with(world, governors) as reeve:
        good = await write(reeve, "good.md")
        bad = await write(reeve, "x.md")
        said = (await reeve.approvals.history())["governorFeedback"]

    assert good.meta.approved_by == "governor:s", said
    assert code(bad) is ErrorCode.APPROVAL_DENIED
    assert said[0]["results"][0]["messages"] == ["could not write"]
    assert not (world.workspace / "left-behind").exists()


@pytest.mark.parametrize("body", ["exit 3", "echo approve", "sleep 60", "kill -9 $$"])
async def test_a_script_that_fails_hangs_or_prints_no_json_approves_nothing(world: World, body: str) -> None:
    governors = (
        "permission_governors:\n"
        f"  - {{id: s, type: script, command: [/bin/sh, -c, {json.dumps(body)}], timeout_ms: 3000}}\n{ALL_APPROVE}"
    )
    async with reeve_with(world, governors) as reeve:
        result = await write(reeve)

    assert code(result) is ErrorCode.PERMISSION
    assert not (world.workspace / "a.md").exists()


class Heard(list[bytes]):
    """The requests that came; `came` is set with the first."""

    def __init__(self) -> None:
        super().__init__()
        self.came = asyncio.Event()


async def serve_once(reply: bytes, status: str = "200 OK") -> tuple[Any, int, Heard]:
    """An HTTP server on a free port that answers everything alike."""
    heard = Heard()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        heard.append(head + await reader.readexactly(size))
        heard.came.set()
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(reply)}\r\nconnection: close\r\n\r\n".encode() + reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1], heard


@pytest.mark.parametrize(
    ("reply", "status", "allowed", "reached"),
    [
        (b'{"status": "approve"}', "200 OK", True, True),
        (b'{"status": "approve"}', "500 Oops", True, False),
        (b"not json", "200 OK", True, False),
        (b'{"status": "approve"}', "200 OK", False, False),
    ],
)
async def test_an_http_governor_is_reached_through_the_network_guard(
    world: World, monkeypatch: pytest.MonkeyPatch, reply: bytes, status: str, allowed: bool, reached: bool
) -> None:
    server, port, heard = await serve_once(reply, status)
    url = f"http://127.0.0.1:{port}/review"
    governors = (
        "permission_governors:\n"
        f"  - {{id: h, type: http, url: '{url}', headers: {{authorization: 'Bearer t0ken'}}, timeout_ms: 20000}}\n"
        f"{ALL_APPROVE}"
    )
    network = Network(allow=(f"127.0.0.1:{port}",)) if allowed else Network()
    async with server, reeve_with(world, governors, more={"network": network}) as reeve:
        result = await write(reeve)

    assert result.success is reached
    assert bool(heard) is allowed
    if heard:
        assert b"bearer t0ken" in heard[0].lower()


class Nowhere:
    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        raise AssertionError("no program runs here")


NOWHERE = Nowhere()


async def test_the_output_of_an_agent_is_reviewed_too() -> None:
    spec = GovernorSpec(id="r", type="python", command=("tests.approval.governing:reject",))
    governors = Governors(
        GovernorSettings(output=(spec,)),
        processes=NOWHERE,
        http=NO_HTTP,
        now=lambda: 5.0,
        workspace="/",
    )

    review = await governors.review_output("done", task="t", session="s")

    assert review.rejected is not None
    assert review.follow_up == "try on Monday"
    assert governing.SEEN[-1]["agentOutput"] == "done"


async def test_a_governor_that_hangs_approves_nothing_and_holds_a_bounded_number_of_threads() -> None:
    """It blocks neither the threads that other work shares, nor the end of the program."""
    spec = GovernorSpec(id="h", type="python", command=("tests.approval.governing:hangs",), timeout_ms=50)
    governors = Governors(
        GovernorSettings(permission=(spec,), auto_decision="all_approve"),
        processes=NOWHERE,
        http=NO_HTTP,
        now=lambda: 5.0,
        workspace="/",
    )
    governing.HANGING.clear()
    try:
        reviews = [await governors.review_call({}, task="t", session="s") for _ in range(MAX_FUNCTIONS + 3)]
        others = await asyncio.gather(*(asyncio.to_thread(int, "7") for _ in range(64)))
    finally:
        governing.RELEASE.set()

    assert {each.results[0].status for each in reviews} == {GovernorStatus.ERROR}
    assert not any(each.all_approve for each in reviews)
    assert "have not returned" in reviews[-1].results[0].messages[0]
    assert (len(governing.HANGING), others) == (MAX_FUNCTIONS, [7] * 64)


async def test_reviews_of_answers_are_in_the_history(world: World) -> None:
    async with reeve_with(world, f"output_governors:\n  - {PYTHON % ('reject', 'reject', '')}\n") as reeve:
        problem, follow_up = await reeve.internals.review_output("s", "done")
        history = await reeve.approvals.history()

    (said,) = history["governorFeedback"]
    assert (said["phase"], said["results"][0]["governorId"], said["results"][0]["status"]) == (
        "post_run",
        "reject",
        "reject",
    )
    assert ("not on Fridays" in problem, follow_up) == (True, "try on Monday")


@pytest.mark.parametrize("reply", [None, [], {}, {"status": "APPROVE"}, {"status": ["approve"]}, {"ok": True}, 1])
def test_a_reply_without_a_known_status_is_an_error(reply: Any) -> None:
    try:
        status = read_reply("g", reply).status
    except TypeError:
        status = GovernorStatus.ERROR
    assert status is GovernorStatus.ERROR
