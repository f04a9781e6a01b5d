import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.approval.people import ASK, Listener, Person, Place, broker_of, call, open_grants, runs, writes
from toolreeve.approval.always_rule import AlwaysRule
from toolreeve.approval.broker import Broker
from toolreeve.approval.channels.callback import CallbackChannel
from toolreeve.approval.refusals import suggest_channels
from toolreeve.approval.request import Answer, Approval, Request, Scope
from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.files import Files
from toolreeve.core.verdict import Decision, Verdict


async def refusal(broker: Broker, action: Action | None = None, **options: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await broker.settle(action or call(), ASK, **options)
    return raised.value


def test_nothing_but_an_ask_can_be_approved() -> None:
    for decision in (Decision.ALLOW, Decision.DENY):
        with pytest.raises(ToolreeveError, match="only an ASK verdict"):
            asyncio.run(broker_of(lambda _: True).settle(call(), Verdict(decision, "x")))


async def test_a_yes_is_an_approval_for_once() -> None:
    approval = await broker_of(lambda _: True).settle(call(), ASK)

    assert replace(approval, digest="", binding="") == Approval(by="callback", scope=Scope.ONCE)


async def test_a_no_carries_the_note_to_the_model() -> None:
    error = await refusal(broker_of(lambda request: request.deny(by="Bea", note="use the staging file")))

    assert error.code is ErrorCode.APPROVAL_DENIED
    assert error.message == "Tool 'write_file' (danger=medium) was refused by Bea: use the staging file"


async def test_with_nobody_to_ask_the_error_says_what_to_configure() -> None:
    error = await refusal(Broker([Person(there=False)], now=lambda: 0.0))

    assert error.code is ErrorCode.PERMISSION
    assert "Tool 'write_file' (danger=medium) requires approval" in error.message
    ways = "; ".join(error.suggestions)
    assert all(word in ways for word in ("approve=", "policy.yaml", "allowed_tools"))


@pytest.mark.parametrize("origin", ["mcp", "agent", "client"])
def test_a_model_is_not_told_how_to_loosen_the_policy(origin: str) -> None:
    assert suggest_channels(origin) == ("tell the user that this call needs their approval",)


@pytest.mark.parametrize("answer", ["yes", "True", 1, 1.0, None, [True], {"granted": True}, object(), b"y", "", 0])
async def test_what_is_not_strictly_true_is_not_an_approval(answer: Any) -> None:
    error = await refusal(broker_of(lambda _: answer))

    assert error.code is ErrorCode.PERMISSION
    assert "no channel gave a usable answer" in error.message


@pytest.mark.parametrize("granted", ["yes", 1, None, 2.0])
async def test_an_answer_whose_yes_is_not_a_boolean_is_not_an_approval(granted: Any) -> None:
    error = await refusal(broker_of(lambda _: Answer(granted=granted)))

    assert error.code is ErrorCode.PERMISSION


async def test_a_channel_that_fails_is_not_an_approval() -> None:
    def fail(_: Request) -> bool:
        raise RuntimeError("out of paper")

    error = await refusal(broker_of(fail))

    assert error.code is ErrorCode.PERMISSION
    assert "callback: out of paper" in error.message


async def test_a_channel_that_fails_leaves_the_others_to_answer() -> None:
    def fail(_: Request) -> bool:
        raise RuntimeError("out of paper")

    person = Person()
    broker = Broker([CallbackChannel(fail), person], now=lambda: 0.0)
    settling = asyncio.create_task(broker.settle(call(), ASK))
    await person.asked.wait()

    person.say(lambda request: request.allow())

    assert (await settling).by == "person via person"


async def test_the_first_answer_counts_and_the_other_questions_are_taken_back() -> None:
    people = [Person("one"), Person("two"), Person("three")]
    settling = asyncio.create_task(Broker(people, now=lambda: 0.0).settle(call(), ASK))
    for person in people:
        await person.asked.wait()

    people[1].say(lambda request: request.allow())

    assert (await settling).by == "person via two"
    assert [person.withdrawn for person in people] == [True, False, True]


async def test_of_answers_at_the_same_moment_a_no_counts() -> None:
    people = [Person("one"), Person("two")]
    settling = asyncio.create_task(Broker(people, now=lambda: 0.0).settle(call(), ASK))
    for person in people:
        await person.asked.wait()

    people[0].say(lambda request: request.allow())
    people[1].say(lambda request: request.deny())

    with pytest.raises(ToolError) as raised:
        await settling
    assert raised.value.code is ErrorCode.APPROVAL_DENIED


async def test_silence_is_a_timeout_and_never_called_a_refusal() -> None:
    person, listener = Person(), Listener()

    error = await refusal(Broker([person], now=lambda: 0.0, timeout=0.02, emit=listener))

    assert error.code is ErrorCode.APPROVAL_TIMEOUT
    assert "nobody answered within 0.02 s" in error.message
    assert not any(word in error.message.lower() for word in ("refus", "denied", "rejected"))
    assert person.withdrawn
    assert listener.told == [("approval_requested", None), ("approval_resolved", "timeout")]


async def test_a_channel_that_will_not_let_go_is_left_behind() -> None:
    let_go = asyncio.Event()

    async def stubborn(_: Request) -> bool:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return True

    error = await refusal(Broker([CallbackChannel(stubborn)], now=lambda: 0.0, timeout=0.02))

    assert error.code is ErrorCode.APPROVAL_TIMEOUT
    let_go.set()


async def test_a_cancelled_call_takes_its_question_back() -> None:
    person, listener = Person(), Listener()
    settling = asyncio.create_task(Broker([person], now=lambda: 0.0, emit=listener).settle(call(), ASK))
    await person.asked.wait()

    settling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await settling
    assert person.withdrawn
    assert listener.told[-1] == ("approval_withdrawn", "withdrawn")


async def test_an_answer_to_one_request_does_not_answer_another() -> None:
    given: list[Answer] = []

    def replay(request: Request) -> Answer:
        given.append(request.allow())
        return given[0]

    broker = broker_of(replay)
    same_call = call()
    await broker.settle(same_call, ASK)

    error = await refusal(broker, same_call)

    assert error.code is ErrorCode.PERMISSION
    assert "answered another request" in error.message


@pytest.mark.parametrize(
    "other",
    [
        call(args={"path": "b.txt", "content": "x"}),
        call(user="eve"),
        call(session="t"),
        call(description="another tool behind the same name"),
        call(danger=DangerLevel.HIGH),
    ],
)
async def test_requests_for_different_calls_have_different_digests(other: Action) -> None:
    seen: list[str] = []

    def note(request: Request) -> bool:
        seen.append(request.digest)
        return True

    broker = broker_of(note)
    await broker.settle(call(), ASK)
    await broker.settle(other, ASK)
    await broker.settle(call(), ASK, version="2")

    assert len(set(seen)) == 3


async def test_arguments_changed_behind_the_persons_back_are_not_approved() -> None:
    action = call()

    def swap(_: Request) -> bool:
        action.args["content"] = "rm -rf"  # type: ignore[index]
        return True

    error = await refusal(broker_of(swap), action)

    assert "changed while it was being approved" in error.message


async def test_a_person_cannot_change_the_call_through_the_request() -> None:
    action = call(args={"path": "a", "list": [1]})

    def meddle(request: Request) -> bool:
        request.args["list"].append(2)
        return True

    await broker_of(meddle).settle(action, ASK)

    assert action.args == {"path": "a", "list": [1]}


async def test_a_link_swapped_while_the_person_reads_is_not_approved() -> None:
    place = Place()
    action = call(effects=writes)
    action._files = place  # type: ignore[assignment]

    def swap(_: Request) -> bool:
        place.root = "/elsewhere"
        return True

    error = await refusal(broker_of(swap), action)

    assert error.code is ErrorCode.PERMISSION


async def asked_twice(first: Action, second: Action, *, version: str = "") -> int:
    """How often a person is asked who says "for this session" to the first call."""
    asked: list[Request] = []

    def note(request: Request) -> Answer:
        asked.append(request)
        return request.allow(scope="session")

    with tempfile.TemporaryDirectory() as folder:
        async with open_grants(Path(folder)) as grants:
            broker = broker_of(note, grants=grants)
            assert (await broker.settle(first, ASK)).scope is Scope.SESSION
            await broker.settle(second, ASK, version=version)
    return len(asked)


async def test_a_yes_for_the_session_covers_the_same_call_again() -> None:
    assert await asked_twice(call(), call()) == 1


async def test_a_yes_for_the_session_covers_another_content_of_the_same_file() -> None:
    again = {"path": "a.txt", "content": "other"}

    assert await asked_twice(call(effects=writes), call(args=again, effects=writes)) == 1


@pytest.mark.parametrize(
    "other",
    [
        call(effects=writes, args={"path": "b.txt", "content": "x"}),
        call(effects=writes, session="t"),
        call(effects=writes, user="eve"),
        call(effects=writes, danger=DangerLevel.HIGH),
        call(effects=writes, name="edit_file"),
        call(effects=writes, description="redefined"),
        call(effects=lambda args, files: [*writes(args, files), Effect(EffectKind.NET, "evil.com")]),
    ],
)
async def test_a_yes_for_the_session_covers_nothing_else(other: Action) -> None:
    assert await asked_twice(call(effects=writes), other) == 2


async def test_a_yes_for_the_session_ends_when_the_policy_changes() -> None:
    assert await asked_twice(call(), call(), version="new") == 2


async def test_a_yes_for_a_command_covers_exactly_that_command() -> None:
    def command(text: str) -> Action:
        return call("bash", {"command": text}, effects=runs)

    assert await asked_twice(command("ls"), command("ls")) == 1
    assert await asked_twice(command("ls"), command("rm -rf /")) == 2


async def test_a_yes_for_what_writes_and_sends_covers_only_the_same_content() -> None:
    def writes_and_sends(args: dict[str, Any], files: Files) -> list[Effect]:
        return [*writes(args, files), Effect(EffectKind.NET, "example.com")]

    again = {"path": "a.txt", "content": "my password"}

    assert await asked_twice(call(effects=writes_and_sends), call(effects=writes_and_sends)) == 1
    assert await asked_twice(call(effects=writes_and_sends), call(args=again, effects=writes_and_sends)) == 2


async def test_edited_arguments_come_back_and_grant_nothing_lasting(tmp_path: Path) -> None:
    edited = {"path": "safe.txt", "content": "x"}
    async with open_grants(tmp_path) as grants:
        broker = broker_of(lambda request: request.allow(args=edited, scope="session"), grants=grants)
        action = call()

        approval = await broker.settle(action, ASK)

        assert (approval.args, approval.scope) == (edited, Scope.ONCE)
        assert await grants.find(action, version="") is None


async def test_an_always_with_an_expiry_writes_a_rule_that_expires() -> None:
    written: list[AlwaysRule] = []

    async def remember(rule: AlwaysRule) -> str:
        written.append(rule)
        return "policy.yaml:9"

    answer = broker_of(lambda request: request.allow(scope="always", expires=1_900_000_000.0), remember=remember)
    await answer.settle(call(effects=writes), ASK)

    assert written[0]["expires"] == "2030-03-17T17:46:40Z"


async def test_always_writes_the_narrow_rule_that_was_shown() -> None:
    written: list[AlwaysRule] = []

    async def remember(rule: AlwaysRule) -> str:
        written.append(rule)
        return "policy.yaml:9"

    shown: list[str] = []

    def always(request: Request) -> Answer:
        shown.append(request.lasting)
        return request.allow(scope="always")

    approval = await broker_of(always, remember=remember).settle(call(effects=writes), ASK)

    assert (approval.scope, approval.remembered) == (Scope.ALWAYS, "policy.yaml:9")
    assert written[0]["target"] == {"one_of": ["/w/a.txt"]}
    assert '"one_of":["/w/a.txt"]' in shown[0]


async def test_always_without_a_place_to_write_is_once_and_says_so() -> None:
    approval = await broker_of(lambda request: request.allow(scope="always")).settle(call(), ASK)

    assert approval.scope is Scope.ONCE
    assert approval.problem == "no rule can be written here"


async def test_a_rule_that_cannot_be_written_is_once_and_says_so() -> None:
    async def remember(_: AlwaysRule) -> str:
        raise PermissionError(13, "read-only")

    broker = broker_of(lambda request: request.allow(scope="always"), remember=remember)

    approval = await broker.settle(call(), ASK)

    assert approval.scope is Scope.ONCE
    assert "could not be written" in approval.problem


async def test_events_tell_of_the_question_and_its_answer_without_the_arguments() -> None:
    listener = Listener()
    action = call(args={"path": "a", "token": "s3cret"})

    await broker_of(lambda request: request.allow(by="Bea"), emit=listener).settle(action, ASK)

    asked, resolved = listener.events
    assert (asked.event, resolved.event) == ("approval_requested", "approval_resolved")
    assert {asked.task_id, resolved.task_id} == {action.call.id}
    assert asked.data["channels"] == ["callback"]
    assert (resolved.data["outcome"], resolved.data["by"]) == ("granted", "Bea")
    assert "s3cret" not in repr(listener.events)


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_timeout_must_leave_time(timeout: float) -> None:
    with pytest.raises(ToolreeveError):
        Broker(now=lambda: 0.0, timeout=timeout)


async def test_a_hundred_questions_at_once_are_answered_each_by_its_own_answer() -> None:
    broker = broker_of(lambda request: request.allow() if request.args["n"] % 2 else request.deny())

    outcomes = await asyncio.gather(
        *(broker.settle(call(args={"n": n}), ASK) for n in range(100)), return_exceptions=True
    )

    assert [isinstance(outcome, Approval) for outcome in outcomes] == [n % 2 == 1 for n in range(100)]


def blocking(answer: Any) -> Callable[[Request], Any]:
    return lambda _: answer


async def test_a_plain_function_may_answer_too() -> None:
    broker = Broker([CallbackChannel(blocking(True))], now=lambda: 0.0)

    assert (await broker.settle(call(), ASK)).scope is Scope.ONCE


async def test_an_object_with_an_async_call_may_answer_too() -> None:
    class Approver:
        async def __call__(self, request: Request) -> Answer:
            return Answer(granted=True, by=request.tool)

    assert (await Broker([CallbackChannel(Approver())], now=lambda: 0.0).settle(call(), ASK)).by == "write_file"


async def test_the_next_channel_is_asked_after_the_time_for_it_and_not_before() -> None:
    people = [Person("first"), Person("away", there=False), Person("second"), Person("third")]
    broker = Broker(people, now=lambda: 0.0, timeout=30.0, escalation=0.05)
    settling = asyncio.create_task(broker.settle(call(), ASK))
    await people[0].asked.wait()
    early = [each.name for each in people if each.asked.is_set()]
    await people[2].asked.wait()
    order = [each.name for each in people if each.asked.is_set()]
    people[0].say(lambda request: request.allow(by="ann"))
    approval = await settling

    assert (early, order) == (["first"], ["first", "second"])
    assert approval.by == "ann", "the first is still asked, and may still answer"
    assert people[2].withdrawn
    assert not people[1].asked.is_set()


async def test_a_channel_that_fails_is_followed_by_the_next_at_once() -> None:
    people = [Person("first"), Person("second")]
    broker = Broker(people, now=lambda: 0.0, timeout=30.0, escalation=3600.0)
    settling = asyncio.create_task(broker.settle(call(), ASK))
    await people[0].asked.wait()
    people[0].say(lambda _: "yes")
    await people[1].asked.wait()
    people[1].say(lambda request: request.deny(by="bea"))

    with pytest.raises(ToolError, match="bea"):
        await settling
