"""What a question offers beyond the very call: plain sentences, narrowest first, never more than they say."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.test_command_rules import ATTACKS, GIT, NPM, PYTEST
from toolreeve.core.action import Action
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.trial import Confinement
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.offers import covers, find_offers
from toolreeve.policy.state import PolicyState

ROOT = "/ws"
STATE = PolicyState.of(root=ROOT, confinements=(Confinement.LOOK, Confinement.TRY))


def command(text: str, *changed: str, deleted: tuple[str, ...] = ()) -> Action:
    action = build_action("bash", {"command": text}, root=ROOT)
    effects = [Effect(EffectKind.WRITE, path) for path in changed]
    effects += [Effect(EffectKind.DELETE, path) for path in deleted]
    return action.after_trial(effects) if effects else action


def sentences(action: Action) -> list[str]:
    return [offer.sentence for offer in find_offers(action, STATE)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("npm install left-pad", "`npm install …`"),
        ("npm run test -- --watch", "`npm run test …`"),
        ("git push origin main", "`git push …`"),
        ("pytest -q tests | tail -3", "`pytest …`"),
        ("timeout 60 pytest -q", "`pytest …`"),
        ("python -m pytest -q", "`python -m pytest …`"),
        ("uv run pytest -q", "`uv run pytest …`"),
        ("python tools/run.py --all", "`python tools/run.py …`"),
        ("make test", "`make test …`"),
        ("git add -A && git commit -m 'x y'", "`git add …` and `git commit …`"),
        ("bash -lc 'pytest -q'", "`pytest …`"),
        ("frobnicate a b", "`frobnicate …`"),
    ],
)
def test_a_program_and_its_subcommand_are_offered_with_any_words(text: str, named: str) -> None:
    assert sentences(command(text)) == [f"{named} with any words, not confined"]


@pytest.mark.parametrize(
    "text",
    [
        "python -c 'import os'",
        "python - <<'EOF'\nx\nEOF",
        "node -e 1",
        'sh -c "$X"',
        "eval x",
        "sudo make install",
        "pytest $ARGS",
        "pytest; rm -rf /",
        "a 'unclosed",
        "for i in 1 2; do pytest; done",
        "PATH=x pytest",
        "git -C elsewhere add .",
        "make -j4",
        "a; b; c; d",
    ],
)
def test_nothing_is_offered_where_words_do_not_say_what_runs(text: str) -> None:
    assert sentences(command(text)) == []


def test_after_a_trial_the_confined_program_and_the_folder_are_offered() -> None:
    assert sentences(command("pytest -q", "/ws/src/a/x.py", "/ws/src/b/y.py")) == [
        "`pytest …` with any words, confined: keep what it changes in the workspace",
        "changes below src/",
    ]
    deletes = command("python - <<'EOF'\nx\nEOF", "/ws/out/x", deleted=("/ws/out/y",))
    assert sentences(deletes) == ["changes and deletions below out/"]
    assert sentences(command("python -c 1", "/ws/x")) == []


def test_file_tools_offer_the_folder() -> None:
    action = build_action("write_file", {"path": "docs/a.md", "content": "x"}, root=ROOT)

    [offer] = find_offers(action, STATE)

    assert (offer.sentence, offer.rule["tool"]) == ("changes below docs/", ["write_file", "edit_file"])
    assert find_offers(build_action("write_file", {"path": "a.md", "content": "x"}, root=ROOT), STATE) == []


def test_a_confined_offer_covers_changes_of_trials_and_no_call_beforehand() -> None:
    [offer, _] = find_offers(command("pytest -q", "/ws/src/a"), STATE)

    assert covers(offer.rule, command("pytest tests", "/ws/other/b"), STATE)
    assert not covers(offer.rule, command("pytest tests"), STATE)
    assert not covers(offer.rule, command("pytest; rm -rf ./keep", "/ws/other/b"), STATE)
    assert not covers(offer.rule, command("pytest tests", "/elsewhere/b"), STATE)


@pytest.mark.parametrize("attack", [text for rule, text in ATTACKS if rule in (PYTEST, GIT, NPM)])
def test_no_offer_for_a_harmless_command_covers_an_attack(attack: str) -> None:
    for text in ("pytest -q", "git add x", "npm run test", "mytool x"):
        [offer] = find_offers(command(text), STATE)

        assert not covers(offer.rule, command(attack), STATE)


WORDS = st.sampled_from(["pytest", "rm", "-rf", "x", "git", "add", "commit", "npm", "run", "make", "-q", "test"])
COMMAND = st.lists(WORDS, min_size=1, max_size=4)


@given(granted=COMMAND, other=st.lists(COMMAND, min_size=1, max_size=3), joined=st.sampled_from([" ; ", " && ", "\n"]))
def test_a_grant_covers_no_command_with_a_simple_command_that_it_does_not_name(
    granted: list[str], other: list[list[str]], joined: str
) -> None:
    text = joined.join(map(shlex.join, other))
    for offer in find_offers(command(shlex.join(granted)), STATE):
        if "program" in offer.rule and covers(offer.rule, command(text), STATE):
            names = [each.split() for each in offer.rule["program"]]
            for words in other:
                reads = not find_offers(command(shlex.join(words)), STATE)
                assert reads or any(words[: len(name)] == name for name in names)
