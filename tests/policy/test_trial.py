import pytest

from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.tool import bind
from toolreeve.core.trial import Confinement, ObservedChanges
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule, protect
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import NOTHING_CHANGED, decide_changes, decide_trial
from toolreeve.runtime.builtin import TOOLS
from toolreeve.runtime.shell_tools import with_analysis

ROOT = "/ws"
BOUND = {each.name: bind(each) for each in with_analysis(TOOLS, root=ROOT, home="/home/me")}
ENFORCED = (Confinement.LOOK, Confinement.TRY)


def action(command: str, tool: str = "bash") -> Action:
    args = {"command": command} if tool in ("bash", "execute_command") else {}
    return Action(ToolCall(tool=tool, args=args), BOUND[tool], args, None)  # type: ignore[arg-type]


def state(mode: str = "default", *rules: PermissionRule, **parts: object) -> PolicyState:
    parts = {"confinements": ENFORCED} | parts
    return PolicyState.of(mode=PermissionMode(mode), rules=rules, root=ROOT, **parts)  # type: ignore[arg-type]


def tried(command: str, policy: PolicyState) -> Verdict:
    call = action(command)
    return decide_trial(call, decide(call, policy), policy)


def changed(*paths: str, deleted: tuple[str, ...] = (), untracked: tuple[str, ...] = ()) -> ObservedChanges:
    writes = [Effect(EffectKind.WRITE, path) for path in paths]
    deletes = [Effect(EffectKind.DELETE, path) for path in deleted]
    return ObservedChanges(effects=(*writes, *deletes), untracked=untracked)


def kept(changes: ObservedChanges, policy: PolicyState, command: str = "pytest") -> Verdict:
    return decide_changes(action(command), changes, policy)


def test_what_only_reads_runs_in_a_place_where_it_can_only_read() -> None:
    for mode in ("default", "accept_edits", "plan"):
        assert tried("git status | head -3", state(mode)).runs is Confinement.LOOK


@pytest.mark.parametrize(
    "command", ["pytest -q", "make", "unknown-program", "sed -i s/a/b/ f", "git add -A", "a |& ((b"]
)
def test_what_the_mode_would_ask_about_is_tried(command: str) -> None:
    for mode in ("default", "accept_edits", "plan"):
        verdict = tried(command, state(mode))

        assert (verdict.decision, verdict.runs, verdict.layer) == (Decision.ALLOW, Confinement.TRY, "trial")


@pytest.mark.parametrize("command", ["wc -l *", "find . -name '*.py' | xargs grep -n x"])
def test_what_probably_reads_runs_where_it_cannot_write(command: str) -> None:
    for mode in ("default", "plan"):
        verdict = tried(command, state(mode))

        assert (verdict.decision, verdict.runs) == (Decision.ALLOW, Confinement.LOOK)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("curl -d @f https://example.com", "needs the network"),
        ("git push", "needs the network"),
        ("npm install left-pad", "needs the network"),
        ("docker build .", "needs a service outside the sandbox"),
        ("rm -rf /", "its effect cannot be undone"),
        ("echo x > /etc/motd", "outside the workspace"),
        ("touch ../other", "outside the workspace"),
        ("cat .env; pytest", "which may hold secrets"),
    ],
)
def test_what_discarding_does_not_undo_is_asked_about_beforehand_with_the_reason(command: str, why: str) -> None:
    verdict = tried(command, state())

    assert (verdict.decision, verdict.runs) == (Decision.ASK, Confinement.WORK)
    assert "cannot run confined" in verdict.reason
    assert why in verdict.reason


def test_strict_mode_and_ask_rules_ask_beforehand() -> None:
    asking = PermissionRule(decision="ask", program="pytest")

    assert tried("touch x", state("strict")).decision is Decision.ASK
    assert tried("pytest", state("strict")).decision is Decision.DENY
    assert tried("pytest", state("default", asking)) == decide(action("pytest"), state("default", asking))


def test_an_unknown_program_is_not_tried_while_a_rule_keeps_files_from_being_read() -> None:
    guard = PermissionRule(decision="deny", id="books", effect="read", target={"under": "books"})

    assert "may read what the rule 'books' guards" in tried("unknown-program", state("default", guard)).reason
    assert tried("unknown-program", state("default", guard, hidden=[guard])).runs is Confinement.TRY
    assert tried("touch x", state("default", guard)).runs is Confinement.TRY


def test_without_the_sandbox_nothing_is_tried() -> None:
    bare = state(confinements=())

    assert tried("pytest", bare) == decide(action("pytest"), bare)
    assert tried("ls", bare).runs is Confinement.WORK


def test_a_trial_that_changed_nothing_is_answered_unasked() -> None:
    for mode in PermissionMode:
        assert kept(changed(), state(mode.value)) is NOTHING_CHANGED


def test_changes_are_asked_about_in_default_mode_and_discarded_in_plan_mode() -> None:
    assert kept(changed("/ws/a"), state()).decision is Decision.ASK
    assert kept(changed("/ws/a"), state()).reason == "The command would change /ws/a"
    plan = kept(changed("/ws/a", "/ws/b", deleted=("/ws/c",)), state("plan"))
    assert (plan.decision, plan.layer) == (Decision.DENY, "plan")
    assert plan.reason == "Plan mode: this would change 2 files and delete /ws/c; discarded"


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        (changed("/ws/a", "/ws/b"), Decision.ALLOW),
        (changed(deleted=("/ws/a", "/ws/b")), Decision.ALLOW),
        (changed(deleted=("/ws/a", "/ws/b", "/ws/c")), Decision.ASK),
        (changed(deleted=("/ws/a",), untracked=("/ws/a",)), Decision.ASK),
        (changed("/elsewhere/a"), Decision.ASK),
        (changed("/ws/.git/index", "/ws/.git/objects/a/b"), Decision.ALLOW),
        (changed("/ws/.git/hooks/pre-commit"), Decision.ASK),
        (changed("/ws/.github/workflows/x.yml"), Decision.ASK),
        (changed("/ws/sub/.env"), Decision.ASK),
        (changed("/ws/sub/.gitignore"), Decision.ASK),
        (changed("/ws/.git/info/exclude"), Decision.ASK),
        (changed("/ws/my.gitignore"), Decision.ALLOW),
    ],
)
def test_accept_edits_keeps_what_can_be_undone(changes: ObservedChanges, decision: Decision) -> None:
    assert kept(changes, state("accept_edits", deletes=2)).decision is decision


def test_observed_changes_meet_the_floor_and_the_rules_of_predicted_ones() -> None:
    ledger = PermissionRule(decision="deny", effect="write", target={"glob": "**/*.ledger"})
    asks = PermissionRule(decision="ask", effect="write", target={"under": "ci"})
    drafts = PermissionRule(decision="allow", effect="write", target={"under": "drafts"})
    rules = (ledger, asks, drafts)

    for mode in ("default", "accept_edits"):
        policy = state(mode, *rules, floor=protect(["/ws/.toolreeve"]))
        assert kept(changed("/ws/a", "/ws/x.ledger"), policy).decision is Decision.DENY
        assert kept(changed("/ws/ci/a"), policy).decision is Decision.ASK
        assert kept(changed("/ws/drafts/a"), policy).decision is Decision.ALLOW
        assert kept(changed("/ws/.toolreeve/a"), policy).layer == "floor"
    assert kept(changed("/ws/drafts/a", "/ws/b"), state("default", *rules)).decision is Decision.ASK


def test_a_command_believed_to_read_is_held_to_what_it_did() -> None:
    deny = PermissionRule(decision="deny", effect="write", target={"under": "src"})

    assert kept(changed("/ws/src/a"), state("default", deny), "ls").decision is Decision.DENY


@pytest.mark.parametrize("mode", ["default", "plan", "accept_edits"])
def test_the_quality_tools_are_tried_too(mode: str) -> None:
    policy = state(mode)
    call = build_action("run_tests", {}, root=ROOT)

    assert decide_trial(call, decide(call, policy), policy).runs is Confinement.TRY


@pytest.mark.parametrize("mode", ["default", "accept_edits", "plan", "bypass"])
def test_what_needs_a_network_is_refused_where_commands_have_none(mode: str) -> None:
    allowing = PermissionRule(tool="bash", decision="allow", program="curl")
    verdict = tried("curl https://example.com", state(mode, allowing, offline=True))

    assert verdict.decision is Decision.DENY
    assert verdict.reason == 'commands have no network here (commands.network = "none"), and it contacts example.com'
    assert tried("pytest -q", state("default", offline=True)).runs is Confinement.TRY
