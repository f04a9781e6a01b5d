"""Ordinary templates give each program exactly the value, whatever it is, and run nothing else."""

import base64
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.scripted.scripts import run
from toolreeve.core.errors import ToolError

NASTY = st.text(st.sampled_from("'\"\\;-$`%_()[]{}|*?.^+/#\n aé:@,=<>&!~0"), max_size=12).filter(
    lambda text: not text.startswith("-")
)
RUNS = st.sampled_from(
    ["touch pwned|", "$(touch pwned)", "`touch pwned`", "a[$(touch pwned)]", "; touch pwned", "|touch pwned"]
)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

EXACT: dict[str, tuple[str, Callable[[str], str]]] = {
    "printf": ("printf %s {{x}}", str),
    "echo into a pipe": ('printf %s "{{x}}" | base64 -w0', lambda text: base64.b64encode(text.encode()).decode()),
    "digest": ('printf %s "{{x}}" | sha256sum', lambda text: f"{hashlib.sha256(text.encode()).hexdigest()}  -\n"),
    "jq by name": (
        "jq -n -c --arg v \"{{x}}\" '[$v]'",
        lambda text: f"{json.dumps([text], ensure_ascii=False, separators=(',', ':'))}\n",
    ),
    "jq literal": ("jq -n -j '{{x|json}}'", str),
    "awk environment": ('V={{x}} awk \'BEGIN { printf "%s", ENVIRON["V"] }\'', str),
    "python argument": ("python3 -S -c 'import sys; sys.stdout.write(sys.argv[1])' {{x}}", str),
    "perl argument": ("perl -e 'print $ARGV[0]' -- {{x}}", str),
    "perl input": ("printf %s {{x}} | perl -pe '1'", str),
    "shell argument": ("bash -c 'printf %s \"$1\"' _ {{x}}", str),
    "shell in find": ("find . -maxdepth 0 -exec sh -c 'printf %s \"$1\"' _ 'x{{x}}' \\;", lambda text: f"x{text}"),
    "wrapper": ("timeout 9 env V={{x}} printenv V", lambda text: f"{text}\n"),
    "loop": ("for v in '{{x}}'; do printf %s \"$v\"; done", str),
    "array": ('a=({{x}}); printf %s "${a[@]}"', str),
    "function": ('say() { printf %s "$1"; }; say "{{x}}"', str),
    "heredoc": ("cat <<EOF\n{{x}}\nEOF\n", lambda text: f"{text}\n"),
    "file": ('f=$(mktemp); printf %s "{{x}}" > "$f"; cat "$f"; rm "$f"', str),
    "sed on input": ("printf %s {{x}} | sed ''", str),
    "xargs": ("printf '%s\\0' {{x}} | xargs -0 printf %s", str),
    "tr": ("tr a b <<< {{x}}", lambda text: text.replace("a", "b") + "\n"),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_program_gets_exactly_the_value(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, expected = EXACT[name]
    monkeypatch.chdir(tmp_path)

    @given(NASTY | RUNS)
    @FEW
    def holds(text: str) -> None:
        assume("{}" not in text or "-exec" not in script)
        assert run(script, {"x": text}) == expected(text)
        assert list(tmp_path.iterdir()) == []

    holds()


@pytest.mark.parametrize("value", ["{}", "a{}b", "{}{}", "{{}}"])
@pytest.mark.parametrize("word", ["{{x}}", "'x{{x}}'", '"$1{{x}}"'])
def test_a_value_that_find_would_replace_is_refused(word: str, value: str) -> None:
    script = f"find . -maxdepth 0 -exec printf %s {word} \\; -name '*' -exec printf %s {word} \\;"

    assert run(script, {"x": "{"}).count("{") == 2
    with pytest.raises(ToolError, match=r"may not contain '{}' here: find would replace it"):
        run(script, {"x": value})


def test_files_of_any_name_are_read_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "touch pwned|"
    (tmp_path / name).write_text("one\ntwo\n")

    for script in ('sed -n 1p "{{x}}"', "awk 'NR == 1' \"{{x}}\"", 'head -n 1 "{{x}}"', 'grep one "{{x}}"'):
        assert run(script, {"x": name}) == "one\n"
    assert run("perl -ne 'print if $. == 1' < \"{{x}}\"", {"x": name}) == "one\n"
    assert run('find . -name "{{x}}" -exec sh -c \'wc -l < "$1"\' _ {} \\;', {"x": "touch*"}) == "2\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_git_finds_by_author_and_commits_any_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q", "."], check=True)
    subprocess.run(["git", "config", "user.name", "O'Hara"], check=True)
    subprocess.run(["git", "config", "user.email", "o@example.com"], check=True)
    message = "- $(touch pwned); `id`"

    assert run('git commit -q --allow-empty -m "{{x}}"', {"x": message}) == ""
    assert run('git log --author="{{x}}" --format=%s', {"x": "O'Hara"}) == f"{message}\n"
    assert run('git log --grep="{{x}}" --format=%s', {"x": "nothing"}) == ""
    assert not (tmp_path / "pwned").exists()
