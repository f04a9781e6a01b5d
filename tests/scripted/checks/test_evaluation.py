"""Positions where a value would be code, and where it is data."""

import pytest

from tests.scripted.scripts import run
from toolreeve.core.errors import ToolError
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import ValueRules, compile_script

REFUSED = {
    "chooses a program": "{{x}} a",
    "chooses a program after keywords": "if ! {{x}}; then :; fi",
    "chooses a program behind env": "env A=1 {{x}}",
    "chooses a program behind timeout": "timeout -s KILL 5 {{x}}",
    "chooses a program behind many": "nice -n 5 nohup setsid {{x}}",
    "chooses a program behind xargs": "ls | xargs -n 1 {{x}}",
    "chooses a program behind exec": "exec {{x}}",
    "chooses a program in find": "find . -exec {{x}} \\;",
    "chooses a program by a variable": 'x={{x}}; "$x" a',
    "is an option of env": "env -S{{x}} a",
    "eval": 'eval "echo {{x}}"',
    "eval of a variable": 'x="{{x}}"; y=$x; eval "$y"',
    "eval in a function": 'f() { eval "$1"; }; f "{{x}}"',
    "eval of a line read": 'echo "{{x}}" | while read -r l; do eval "$l"; done',
    "source": "source {{x}}",
    "trap": 'trap "{{x}}" EXIT',
    "arithmetic": "echo $(({{x}} + 1))",
    "old arithmetic": "echo $[{{x}} + 1]",
    "arithmetic command": "(( {{x}} > 1 ))",
    "arithmetic of a variable": "x={{x}}; echo $((x + 1))",
    "arithmetic loop": "n={{x}}; for ((i = 0; i < n; i++)); do :; done",
    "let": "let {{x}}",
    "numeric comparison": "[[ {{x}} -gt 3 ]]",
    "numeric comparison of a variable": 'x="{{x}}"; [[ $x -gt 3 ]]',
    "subscript": "a[{{x}}]=1",
    "subscript in a list": "a=([{{x}}]=1)",
    "subscript read": 'x={{x}}; echo "${a[$x]}"',
    "offset": 'x={{x}}; y=abc; echo "${y:$x}"',
    "integer variable": "declare -i n; n={{x}}",
    "name reference": "declare -n n={{x}}",
    "indirection": 'x={{x}}; echo "${!x}"',
    "prompt": 'x={{x}}; echo "${x@P}"',
    "name of a variable": "export {{x}}=1",
    "name to unset": "unset {{x}}",
    "name to print into": "printf -v {{x}} a",
    "name to test": "[[ -v {{x}} ]]",
    "name to test with [": '[ -v "{{x}}" ]',
    "name to test with test": 'test -v "{{x}}"',
    "test of its own choice": 'x="{{x}}"; test "$x" "{{x}}"',
    "subscript to unset": "x={{x}}; unset 'a[$x]'",
    "subscript to print into": "x={{x}}; printf -v 'a[$x]' y",
    "subscript to read into": "x={{x}}; read 'a[$x]'",
    "expression for let": "x={{x}}; let 'n = x + 1'",
    "expression for an integer": "x={{x}}; declare -i n='x + 1'",
    "search path": "PATH={{x}} ls",
    "search path by env": "env LD_PRELOAD={{x}} ls",
    "shell": 'bash -c "echo {{x}}"',
    "shell with other options": "sh -ec '{{x}}'",
    "shell script": "bash {{x}}",
    "shell input": 'echo "{{x}}" | bash',
    "shell heredoc": "bash <<EOF\n{{x}}\nEOF\n",
    "shell heredoc in a pipe": "cat <<'EOF' | sh -s\n{{x}}\nEOF\n",
    "shell here string": 'bash <<< "{{x}}"',
    "shell input from a program": "bash < <(echo {{x}})",
    "shell in a group": '{ echo a; bash; } <<< "{{x}}"',
    "shell in a loop": "while :; do bash -s; done <<EOF\n{{x}}\nEOF\n",
    "shell further on in a pipe": 'cat <<< "{{x}}" | tee log | sudo -u a bash',
    "shell substitution": "bash <(echo {{x}})",
    "shell behind a wrapper": "timeout 5 sh -c {{x}}",
    "shell in find": "find . -name {{x}} -exec sh -c 'echo {}' \\;",
    "remote shell": "ssh host ls {{x}}",
    "python": 'python3 -c "print({{x}})"',
    "python script": "python3 {{x}}",
    "python heredoc": "python3 - <<EOF\nprint({{x}})\nEOF\n",
    "perl": "perl -ne '{{x}}' file",
    "awk": "awk '/{{x}}/ {print}' file",
    "sed": "sed 's/a/{{x}}/' file",
    "sed expression": "sed -n -e {{x}} file",
    "psql heredoc": "psql <<EOF\n{{x}}\nEOF\n",
    "words of a variable": 'x="{{x}}"; cat $x',
    "option of a program that runs others": 'x=$(echo "{{x}}"); tar tf "$x"',
    "arguments of a program that runs others": 'echo "{{x}}" | xargs find',
    "backticks": "echo `echo {{x}}`",
    "braces": "echo ${y:-{{x}}}",
    "dollar": "echo ${{x}}",
    "backslash": "echo \\{{x}}",
    "half a quote in a section": 'echo {{#x}}"{{/x}} a"',
    "half a heredoc in a section": "cat <<EOF\n{{#x}}\nEOF\n{{/x}}\nEOF\n",
    "delimiter beside a section": "cat <<EOF\n{{#x}}a{{/x}}EOF\nEOF\n",
    "comment after a section": "echo {{#x}}a{{/x}}# b",
    "unfinished": 'echo "{{x}}',
    "no bash at all": "if {{x}} then (",
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_template_is_refused_when_its_value(why: str) -> None:
    with pytest.raises(TemplateProblem) as caught:
        compile_script(REFUSED[why], {})

    assert caught.value.problem


FINE = [
    'x="{{x}}"; if [[ -z "$x" || ! -f "$x" ]]; then exit 1; fi; cat "$x"',
    "bash -c 'echo \"$1\"' _ {{x}}",
    "find . -name '*.py' -exec sh -c 'grep -l \"$1\" \"$2\"' _ {{x}} {} \\;",
    "python3 tool.py {{x}}",
    'f=$(mktemp); trap \'rm -f "$f"\' EXIT; printf %s {{x}} > "$f"; unset f',
    'test -n "{{x}}" && test "{{x}}" = a',
    "python3 -c 'import sys; print(sys.argv[1])' {{x}}",
    "awk -v word={{x}} 'index($0, word)' file",
    "sed -n 1p {{x}}",
    "jq --arg v {{x}} '.[$v]' file",
    'read -r a <<< "{{x}}"; printf -v n %d "$a"; echo $((n + 1))',
    'declare -A m; k={{x}}; m[$k]=1; echo "${m[$k]}"',
    'set -- {{x}}; echo "$1"',
    "timeout {{x}} curl -s https://example.com",
    "env NAME={{x}} program",
    "echo {{x}} > {{x}}",
    'local_name="{{x}}"; [ "$local_name" -gt 3 ]',
    "case {{x}} in a*) echo a ;; *) echo b ;; esac",
    'tar -tf "{{x}}"; tar tf ./"{{x}}"',
    'find {{x}} -name "{{x}}" -exec grep -l "{{x}}" {} \\; | head -{{x}}',
    "cat <<EOF | grep x > out 2>&1\n{{x}}\nEOF\n",
    "i=0; while (( i < 3 )); do echo {{x}}; i=$((i + 1)); done",
]


@pytest.mark.parametrize("script", FINE)
def test_ordinary_scripts_are_accepted(script: str) -> None:
    compile_script(script, {})


def test_numbers_and_chosen_words_may_stand_where_other_values_may_not() -> None:
    terms = {"n": ValueRules(numeric=True), "op": ValueRules(choices=("sort", "uniq"))}

    assert run("n={{n}}; echo $((n + 1))", {"n": 41}, **terms) == "42\n"
    assert run("printf 'b\\na\\n' | {{op}}", {"op": "sort"}, **terms) == "a\nb\n"
    assert run("printf 'a\\nb\\n' | sed -n '{{n}}p'", {"n": 2}, **terms) == "b\n"


def test_a_parameter_that_is_code_says_so() -> None:
    assert run('bash -c "{{code}}"', {"code": "echo run; echo it"}, code=ValueRules(allow_code=True)) == "run\nit\n"


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ('psql -c "{{x}}"', "\\! id"),
        ('sqlite3 -safe db "{{x}}"', ".shell id"),
        ('[ "{{x}}" = a ]', "-v"),
        ('printf "{{x}}"', "-va[$(id)]"),
        ('tar tf "{{x}}"', "--checkpoint-action=exec=id"),
        ('git log "{{x}}"', "--output=x"),
        ('find "{{x}}"', "-delete"),
        ('find . -exec grep "{{x}}" {} \\;', ";"),
    ],
)
def test_a_value_cannot_begin_with_a_command_of_the_program_that_gets_it(script: str, value: str) -> None:
    compiled = compile_script(script, {})

    assert compiled.render({"x": "a.b"}).values == ["a.b"]
    with pytest.raises(ToolError, match="may not begin with"):
        compiled.render({"x": value})


@pytest.mark.parametrize("payload", ["a[$(touch pwned)]", "x=$(touch pwned)", "1+a[$(touch pwned >&2)]"])
def test_bash_would_have_run_what_arithmetic_is_given(payload: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The attack that the refusal of arithmetic is for, on a script that declares the value a number."""
    place = tmp_path_factory.mktemp("attack")
    script = f"cd {place}; x={{{{n}}}}; echo $((x))"

    with pytest.raises(ToolError, match="not a number"):
        run(script, {"n": payload}, n=ValueRules(numeric=True))

    assert list(place.iterdir()) == []
