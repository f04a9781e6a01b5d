"""Denies about paths, against commands of which nobody can tell what they do."""

from typing import Any

import pytest

from tests.world import World
from toolreeve import ErrorCode, ExecutionContext, PermissionPolicy, PermissionRule
from toolreeve.core.verdict import Decision
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.state import PolicyState

ROOT = "/project"
HUSH = PermissionRule(effect="read", target={"glob": "**/*.hush"}, decision="deny", reason="hush")
LEDGER = PermissionRule(effect=["write", "delete"], target={"glob": "**/*.ledger"}, decision="deny", reason="ledger")


def denied(command: str, *rules: PermissionRule, **args: Any) -> bool:
    state = PolicyState.of(rules=rules, allowed_tools=["bash"], root=ROOT)
    return decide(build_action("bash", {"command": command, **args}, root=ROOT), state).decision is Decision.DENY


@pytest.mark.parametrize(
    "command",
    [
        "perl -ne print books/plan.hush",
        "python3 -c \"print(open('books/plan.hush').read())\"",
        "eval cat books/plan.hush",
        "eval cat books/pl''an.h\\ush",
        "eval $'cat books/plan\\x2ehush'",
        "X=plan; perl -ne print books/$X.hush",
        "perl -ne print books/$(cat name).hush",
        "perl -ne print books/{plan,other}.hush",
        "perl -ne print books/*",
        "perl -ne print *",
        "bash -c 'perl -ne print *'",
        "perl -ne print books/plan.hus?",
        "frobnicate --input=books/plan.hush",
        "frobnicate @books/plan.hush",
        "cd books && perl -ne print plan.hush",
        "rev <<< 'hsuh.nalp tac' | sh",
    ],
)
async def test_a_deny_on_reading_meets_the_path_in_a_command_that_is_not_known(world: World, command: str) -> None:
    (world.workspace / "books").mkdir()
    (world.workspace / "books/plan.hush").write_text("the secret plan")
    policy = PermissionPolicy(ExecutionContext(allowed_tools=["bash"], rules=[HUSH]), root=str(world.workspace))

    async with world.reeve(policy=policy) as reeve:
        result = await reeve.call("bash", command=command)

    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.DENIED, "hush")


@pytest.mark.parametrize(
    "command",
    [
        "cat > books/a.ledger <<EOF\n${X}\nEOF",
        "perl -e 'unlink q(books/a.ledger)'",
        "frobnicate -o books/../books/a.ledger",
    ],
)
async def test_a_deny_on_changing_meets_the_path_in_a_command_that_is_not_known(world: World, command: str) -> None:
    (world.workspace / "books").mkdir()
    (world.workspace / "books/a.ledger").write_text("1")
    policy = PermissionPolicy(ExecutionContext(allowed_tools=["bash"], rules=[LEDGER]), root=str(world.workspace))

    async with world.reeve(policy=policy) as reeve:
        result = await reeve.call("bash", command=command)

    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.DENIED, "ledger")
    assert (world.workspace / "books/a.ledger").read_text() == "1"


async def test_what_is_known_is_judged_by_what_it_does_and_not_by_its_words(world: World) -> None:
    policy = PermissionPolicy(ExecutionContext(rules=[HUSH, LEDGER]), root=str(world.workspace))

    async with world.reeve(policy=policy) as reeve:
        result = await reeve.call("bash", command="echo plan.hush a.ledger '*'")

    assert result.output == "plan.hush a.ledger *\n"


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("frobnicate secrets", {"under": "secrets"}),
        ("frobnicate secrets/deep/x", {"under": "secrets"}),
        ("frobnicate ~/.ssh/id_rsa", {"under": "/home/me/.ssh"}),
        ("frobnicate $HOME/.ssh/id_rsa", {"glob": "/home/me/.ssh/*"}),
        ("frobnicate plan.txt", {"equals": "/project/plan.txt"}),
        ("frobnicate ./x/../plan.txt", {"one_of": ["/project/plan.txt"]}),
        ("frobnicate 'a*b.txt'", {"equals": "/project/a*b.txt"}),
        ("frobnicate plan.txt", {"regex": r"plan\.txt$"}),
        ("frobnicate elsewhere", {"not": {"under": "drafts"}}),
        ("frobnicate a.hush", {"glob": "*.hush", "not": {"under": "drafts"}}),
        ("cd books; frobnicate a.ledger", {"glob": "books/*.ledger"}),
        ("make -C secrets all", {"glob": "secrets/**"}),
        ("python3 -c \"import os; os.chdir('books'); open('a.ledger')\"", {"glob": "books/*.ledger"}),
        ("x" * 70_000, {"glob": "books/*.ledger"}),
    ],
)
def test_every_condition_on_paths_is_met_by_words(command: str, target: dict[str, Any]) -> None:
    assert denied(command, PermissionRule(effect="read", target=target, decision="deny"))


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("frobnicate plan.txt", {"glob": "**/*.hush"}),
        ("frobnicate *.py", {"glob": "**/*.hush"}),
        ("frobnicate $X", {"glob": "**/*.hush"}),
        ("psql -c 'select * from hush'", {"glob": "**/*.hush"}),
        ("frobnicate secretsmanager", {"under": "secrets"}),
        ("frobnicate tests/a.py", {"glob": "src/*.py"}),
        ("cd docs && frobnicate tests/a.txt", {"glob": "src/*.py"}),
        ("frobnicate drafts/a.hush", {"glob": "drafts/*.hush", "not": {"under": "drafts"}}),
    ],
)
def test_other_words_are_not_suspected(command: str, target: dict[str, Any]) -> None:
    assert not denied(command, PermissionRule(effect="read", target=target, decision="deny"))


def test_words_are_looked_for_from_the_directory_that_the_call_names() -> None:
    rule = PermissionRule(effect="read", target={"glob": "books/*.ledger"}, decision="deny")

    assert denied("frobnicate a.ledger", rule, working_dir="books")
    assert not denied("frobnicate a.ledger", rule)


@pytest.mark.parametrize(
    ("command", "host"),
    [
        ("python3 -c \"urlopen('https://api.evil.example/x')\"", "*.evil.example"),
        ("frobnicate user@evil.example:22", "evil.example"),
        ("frobnicate EVIL.example.", "evil.example"),
        ("frobnicate https://any.example/", "*"),
    ],
)
def test_a_deny_on_a_host_meets_it_in_the_words(command: str, host: str) -> None:
    assert denied(command, PermissionRule(effect=["net", "send"], target={"host": host}, decision="deny"))
    assert not denied("frobnicate a.txt", PermissionRule(effect="net", target={"host": host}, decision="deny"))


def test_words_neither_prove_an_allow_nor_cause_a_question() -> None:
    rules = [
        PermissionRule(effect=["read", "exec"], target={"glob": "**/*.hush"}, decision=decision)
        for decision in ("allow", "ask")
    ]
    state = PolicyState.of(rules=rules, root=ROOT)

    verdict = decide(build_action("bash", {"command": "frobnicate 'a.hush' x"}, root=ROOT), state)

    assert verdict.layer == "default"


@pytest.mark.parametrize("command", ["a/" * 30_000, "*/" * 30_000, "~" * 60_000, "$(" * 30_000, "\ud800 '" * 9_000])
def test_hostile_text_is_judged_at_once(command: str) -> None:
    assert not denied(command + " x.py", HUSH) or "*" in command


@pytest.mark.parametrize("kind", ["read", "write", "delete"])
@pytest.mark.parametrize("command", ["rm victim --verb", "python3 clean.py", "eval rm victim", "make clean"])
def test_a_deny_without_a_target_meets_every_command_that_is_not_known(command: str, kind: str) -> None:
    rule = PermissionRule(effect=[kind], decision="deny")

    assert denied(command, rule)
    assert not denied("echo fine", rule)


def test_a_deny_without_a_target_leaves_what_is_known_to_do_something_else() -> None:
    rule = PermissionRule(effect=["delete"], decision="deny")

    assert denied("rm victim", rule)
    assert not denied("cp a b", rule)
    assert not denied("ls -la", rule)
    assert not denied("rm victim --verb", PermissionRule(effect=["net"], decision="deny"))


@pytest.mark.parametrize(
    "command", ["eval grep -r plan books", "find books -exec perl -ne print {} +", "eval date -fbooks/plan.hush"]
)
def test_a_folder_stands_for_all_that_is_in_it(command: str) -> None:
    rule = PermissionRule(effect="read", target={"glob": "books/**"}, decision="deny", reason="books")

    assert denied(command, rule)
    assert not denied(command.replace("books", "shelf"), rule)


def test_a_sign_that_names_nothing_is_no_path() -> None:
    assert not denied("perl -ne print @ -", HUSH)
