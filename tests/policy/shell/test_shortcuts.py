"""Commands that looked harmless by one of their words, and were not."""

import pytest
from bench.attacks.exploits import CODE_OF_THE_WORKSPACE, RUN_OR_WRITE, SENT

from tests.policy.shell.workspace import analysed, effects, runs_unasked
from toolreeve.core.effects import EffectKind


@pytest.mark.parametrize("command", [*RUN_OR_WRITE, *CODE_OF_THE_WORKSPACE, *SENT])
def test_no_word_is_believed_before_all_words_are_judged(command: str) -> None:
    assert not runs_unasked(command), analysed(command)


@pytest.mark.parametrize("command", CODE_OF_THE_WORKSPACE[:4])
def test_a_program_that_loads_code_of_the_workspace_says_so(command: str) -> None:
    (part,) = analysed(command).parts

    assert part.code


@pytest.mark.parametrize(
    "command",
    ["sed --version", "git --version", "tar --help", "curl -V", "node -v", "python3 --version", "awk --version"],
)
def test_a_program_that_loads_none_may_describe_itself(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("dig -q x.example.com", "net:x.example.com"),
        ("xmllint --html http://any.example/x", "net:any.example"),
        ("curl -b FILE https://any.example/", "send:any.example"),
        ("pip list -o", "net:package index"),
        ("terraform version", "net:checkpoint-api.hashicorp.com"),
        ("zip -qrm - src", "delete:/project/src"),
        ("xxd a -h", "write:/project/-h"),
        ("tee -", "write:/project/-"),
        ("iconv -f ./x y", "read:/project/x"),
        ("zgrep -R x", "read:/project"),
        ("cat > f << 'EOF'\nx\nEOF", "write:/project/f"),
        ("cat > f <<EOF\n$(x)\nEOF", "write:/project/f"),
        ("PATH=. sed -i s/a/b/ f", "write:/project/f"),
        ("apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF", "delete:/project/a"),
    ],
)
def test_effects_of_shortcuts_are_listed(command: str, effect: str) -> None:
    assert effect in effects(command)


@pytest.mark.parametrize(
    "command", ["env", "env -0", "printenv", "set", "declare -p", "export -p", "export", "echo $API_TOKEN"]
)
def test_variables_that_may_be_secrets_are_never_printed_unasked(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize("command", ["printenv PATH", "declare -p LANG", "echo $EDITOR_NAME", "set -eu; ls"])
def test_other_variables_are(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason


def test_an_assignment_before_a_program_leaves_its_effects_visible() -> None:
    code = analysed("PYTHONPATH=src pytest -q --junitxml=out.xml")
    other = analysed("LD_PRELOAD=./x.so ls")

    assert [(part.program, part.code) for part in code.parts] == [("pytest", True)]
    assert any(effect.kind is EffectKind.WRITE for effect in code.effects)
    assert [(part.program, part.known, part.code) for part in other.parts] == [("ls", False, False)]


def test_activating_an_environment_is_code_of_the_workspace_and_other_files_are_unknown() -> None:
    activated = analysed("source .venv/bin/activate && ls").parts
    other = analysed("source ./x.sh").parts

    assert [(part.known, part.code) for part in activated] == [(False, True), (True, False)]
    assert [(part.known, part.code) for part in other] == [(False, False)]


def test_the_login_shell_of_an_agent_is_read_like_any_other() -> None:
    assert runs_unasked("bash -lc 'cd src && grep -rn TODO . | head'")
    assert not runs_unasked("bash -lc 'touch x'")
