import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.approval.people import open_grants
from tests.world import World
from toolreeve import PermissionRule
from toolreeve.approval.request import Answer, Request
from toolreeve.core.action import Action
from toolreeve.core.call import Principal
from toolreeve.policy.hypothetical import build_action

RULE = {"program": "pytest"}


def granted_call(command: str = "pytest", *, client: str = "agent 1.0", **parts: Any) -> Action:
    action = build_action("bash", {"command": command}, **parts)
    action.call.client = client
    return action


def covers_pytest(rule: Mapping[str, Any], action: Action) -> bool:
    return rule == RULE and bool(action.args["command"].startswith("pytest"))


async def test_a_rule_covers_what_it_says_in_the_same_session_and_policy(tmp_path: Path) -> None:
    async with open_grants(tmp_path, covers=covers_pytest) as grants:
        await grants.add(granted_call(), version="1", by="Ann", rule=RULE)

        assert await grants.find(granted_call("pytest -q"), version="1") == "Ann"
        assert await grants.find(granted_call("rm x"), version="1") is None
        assert await grants.find(granted_call("pytest -q"), version="2") is None


async def test_a_wider_yes_does_not_answer_what_another_rule_asks(tmp_path: Path) -> None:
    async with open_grants(tmp_path, covers=lambda _, __: True) as grants:
        await grants.add(granted_call(), version="1", by="Ann", rule=RULE)

        assert await grants.find(granted_call("pytest -q"), version="1", asked_by="ci-asks") is None
        assert await grants.find(granted_call("pytest -q"), version="1") == "Ann"


async def test_a_rule_that_asks_about_a_folder_goes_on_asking(world: World) -> None:
    (world.workspace / "w.py").write_text("import sys\nopen(sys.argv[1], 'w').write('x')\n")
    (world.workspace / "ci").mkdir()
    asks = PermissionRule(decision="ask", id="ci-asks", effect="write", target={"under": "ci"})
    person = Chooser("session", "`python3 w.py …` with any words, confined: keep what it changes in the workspace")
    async with world.reeve(policy=[asks], approve=person) as reeve:
        await reeve.call("bash", command="python3 w.py a")
        await reeve.call("bash", command="python3 w.py b")
        await reeve.call("bash", command="python3 w.py ci/c")

    assert [request.verdict.rule for request in person.asked] == [None, "ci-asks"]


@pytest.mark.parametrize("rule", [None, RULE])
@pytest.mark.parametrize(
    "other", [{"session": "t"}, {"client": "other 1.0"}, {"origin": "mcp"}, {"principal": Principal(user="Bea")}]
)
async def test_no_other_session_client_door_or_person_shares_a_grant(
    other: dict[str, Any], rule: Any, tmp_path: Path
) -> None:
    async with open_grants(tmp_path, covers=lambda _, __: True) as grants:
        await grants.add(granted_call(), version="1", by="Ann", rule=rule)

        assert await grants.find(granted_call(), version="1") == "Ann"
        assert await grants.find(granted_call(**other), version="1") is None


@pytest.mark.parametrize("rule", [None, RULE])
@pytest.mark.parametrize(
    ("issued", "other", "shared"),
    [
        (True, {"process": "two"}, True),
        (False, {"process": "two"}, False),
        (True, {"process": "two", "workspace": "/elsewhere"}, False),
    ],
)
async def test_only_a_session_that_we_named_is_shared_by_processes_of_one_workspace(
    issued: bool, other: dict[str, Any], shared: bool, rule: Any, tmp_path: Path
) -> None:
    action = granted_call()
    action.call.session_issued = issued
    async with (
        open_grants(tmp_path, covers=lambda _, __: True) as one,
        open_grants(tmp_path, covers=lambda _, __: True, **other) as two,
    ):
        await one.add(action, version="1", by="Ann", rule=rule)

        assert await one.find(action, version="1") == "Ann"
        assert (await two.find(action, version="1") == "Ann") is shared
        await one.end()
        assert (await two.find(action, version="1") == "Ann") is shared
        assert (await one.find(action, version="1") == "Ann") is issued


async def test_a_grant_for_some_uses_answers_that_often(tmp_path: Path) -> None:
    async with open_grants(tmp_path) as grants:
        await grants.add(granted_call(), version="1", by="Ann", uses=2)

        found = [await grants.find(granted_call(), version="1") for _ in range(3)]

    assert found == ["Ann", "Ann", None]


async def test_every_grant_expires_and_an_expired_one_is_not_stored(tmp_path: Path) -> None:
    now = time.time()
    async with open_grants(tmp_path, lifetime=3600.0) as grants:
        assert not await grants.add(granted_call(), version="1", by="Ann", expires=now - 1)
        assert await grants.add(granted_call(), version="1", by="Ann")
        assert await grants.add(granted_call("ls"), version="1", by="Ann", expires=now + 1e6)
        assert await grants.add(granted_call("rm x"), version="1", by="Ann", expires=now + 60)
        stored = await grants._store.list()

    ends = {grant.words: (grant.expires or 0) - now for grant in stored}
    assert [round(seconds / 60) for seconds in ends.values()] == [60, 60, 1]


class Chooser:
    """A person who allows for a scope what is offered under a number, and notes the questions."""

    def __init__(self, scope: str, sentence: str) -> None:
        self.asked: list[Request] = []
        self._scope = scope
        self._sentence = sentence

    async def __call__(self, request: Request) -> Answer:
        self.asked.append(request)
        sentences = [choice.sentence for choice in request.choices]
        return request.allow(by="Ann", scope=self._scope, choice=sentences.index(self._sentence))


WRITES = "python3 -c \"open('out/{0}','w').write('x')\""


async def test_changes_below_a_folder_are_kept_for_the_session_after_one_question(world: World) -> None:
    (world.workspace / "out").mkdir()
    person = Chooser("session", "changes below out/")
    async with world.reeve(approve=person) as reeve:
        for name in ("a", "b", "c"):
            result = await reeve.call("bash", command=WRITES.format(name))
            assert result.success, result.error

    assert len(person.asked) == 1
    assert sorted(path.name for path in (world.workspace / "out").iterdir()) == ["a", "b", "c"]


async def test_a_program_with_any_words_is_kept_for_the_session_and_nothing_after_it(world: World) -> None:
    (world.workspace / "w.py").write_text("import sys\nopen(sys.argv[1], 'w').write('x')\n")
    wide = "`python3 w.py …` with any words, confined: keep what it changes in the workspace"
    person = Chooser("session", wide)
    async with world.reeve(approve=person) as reeve:
        assert (await reeve.call("bash", command="python3 w.py a")).success
        assert (await reeve.call("bash", command="python3 w.py b && ls")).success
        assert len(person.asked) == 1
        person._sentence = "exactly these files"
        await reeve.call("bash", command="python3 w.py c; touch d")

    assert len(person.asked) == 2


async def test_what_is_allowed_for_always_is_the_rule_that_was_shown(world: World, tmp_path: Any) -> None:
    from toolreeve.config import Policy

    (world.workspace / "out").mkdir()
    file = tmp_path / "policy.yaml"
    file.write_text("rules: []\n")
    person = Chooser("always", "changes below out/")
    settings = world.settings(policy=Policy(files=(str(file),)))
    async with world.reeve(settings=settings, approve=person) as reeve:
        assert (await reeve.call("bash", command=WRITES.format("a"))).success
    async with world.reeve(settings=settings, approve=person) as reeve:
        assert (await reeve.call("bash", command=WRITES.format("b"))).success

    assert len(person.asked) == 1
    assert '"under":["' in file.read_text()


async def test_an_answer_that_was_not_offered_is_no_approval(world: World) -> None:
    async with world.reeve(approve=lambda request: request.allow(scope="session", choice=7)) as reeve:
        result = await reeve.call("write_file", path="a/b", content="x")

    assert result.error is not None
    assert "choice 7 was not offered" in result.error.message
