"""Programs that evaluate what they are given get no value; ordinary ones get it as it is."""

import pytest
from bench.attacks.evaluators import canaries, forms

from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import compile_script

ACCEPTED = {
    "perl -e 'print 1' \"{{x}}\"",
    'echo "{{x}}" | xargs',
    'touch a; tar cf a.tar a "{{x}}"',
    "echo 'int main(){}' > a.c; gcc a.c \"{{x}}\"",
    'echo a > f; sed p "{{x}}" f',
    'sqlite3 "{{x}}" "select 1"',
    'node -e 1 "{{x}}"',
    'find . -maxdepth 0 "{{x}}"',
    'curl "{{x}}" --config=c',
    'ed -s "{{x}}" < /dev/null',
    'find . -maxdepth 0 -exec xargs -a l sh -c \\; -name "{{x}}"',
}
"""Forms in which a value is an operand: what it may not begin with keeps it from being code."""


@pytest.mark.parametrize("form", [form for form in forms("evaluators") if form not in ACCEPTED])
def test_a_value_is_refused_where_a_program_would_evaluate_it(form: str) -> None:
    with pytest.raises(TemplateProblem) as caught:
        compile_script(form, {})

    assert caught.value.problem


@pytest.mark.parametrize("form", sorted(ACCEPTED))
def test_what_is_accepted_runs_no_payload(form: str) -> None:
    assert canaries(compile_script(form, {})) == []


@pytest.mark.parametrize("form", forms("ordinary"))
def test_an_ordinary_template_loads(form: str) -> None:
    compile_script(form, {})


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("sqlite3 db \"select '{{x}}'\"", "{{…|sql}}"),
        ("jq '.a == \"{{x}}\"' f", "jq --arg"),
        ("awk '/{{x}}/' f", "awk -v"),
        ('sqlite3 db "{{x}}"', "-safe"),
        ("perl -ne 'print' \"{{x}}\"", "< "),
        ("bash -c 'echo {{x}}'", '"$1"'),
        ("x={{x}}; echo $((x))", "printf -v n %d"),
        ('git log --oneline -Z "{{x}}"', "--"),
        ("psql -c \"select '{{x}}'\"", "{{…|sql}}"),
        ("sqlite3 db \"select '{{x|sql}}'\"", "without quotes"),
        ('psql -v v="{{x}}" <<< "select :v"', ":'v'"),
    ],
)
def test_a_refusal_names_the_way_out(form: str, names: str) -> None:
    with pytest.raises(TemplateProblem) as caught:
        compile_script(form, {})

    assert names in caught.value.fix


def test_the_harness_sees_code_that_is_run() -> None:
    """The canary sings where the author has said that the value is code."""
    from toolreeve.scripted.template import Terms

    assert canaries(compile_script('bash -c "{{x}}"', {"x": Terms(allow_code=True)}))
