"""Programs that evaluate their arguments get no value; ordinary ones get it unchanged."""

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
    'git init -q .; echo a > f; git add f; git grep -n "{{x}}" f',
    'git init -q .; echo a > f; git add f; git grep -in "{{x}}" f',
    'git init -q .; echo a > f; git add f; n="{{x}}"; git grep -n "$n" f',
    'git init -q .; git fetch -t "{{x}}"',
    'git init -q .; git fetch -n "{{x}}"',
    'git init -q .; git fetch "{{y}}{{x}}"',
    'git init -q .; git fetch "$UNSET{{x}}"',
    'git init -q .; e=; git fetch "$e{{x}}" .',
    'git init -q .; git fetch "{{x}}" .',
    'git init -q .; git pull -n "{{x}}"',
    'git init -q .; git ls-remote -t "{{x}}" .',
    'git init -q .; git -c a.b=c ls-remote -t "{{x}}" .',
    'git init -q .; git commit -q --allow-empty -m a; git log -p -U "{{x}}"',
    'git init -q .; git commit -q --allow-empty -m a; git log --format "{{x}}"',
    'git init -q .; git config protocol.ext.allow always; git fetch "{{x}}"',
    'git init -q .; git config protocol.ext.allow always; git remote add o "{{x}}"; git fetch o',
    'go test -v "{{x}}"',
    'go build -v "{{x}}"',
    'hg pull -u "{{x}}"',
    'hg log -r "{{x}}"',
    'hg clone "ssh://{{x}}" y',
    "echo 'int main(){}' > a.c; gcc -O \"{{x}}\" a.c",
    'echo "-wrapper touch,PWNED" > o; echo \'int main(){}\' > a.c; gcc a.c -o "{{x}}"',
    'touch a; tar -cf o.tar --checkpoint=1 --occurrence "{{x}}" a',
    'touch a; tar -cf o.tar --checkpoint=1 --one-top-level "{{x}}" a',
    'touch a; tar -cf o.tar --checkpoint=1 --exclude-vcs-ignores "{{x}}" a',
    'tar -tf "{{x}}"',
    'tar xzf "{{x}}"',
    'tar --file="backup-{{x}}" -t',
    'cpio -i -F "{{x}}"',
    'touch a; zip -r o.zip a -x "{{x}}"',
    'touch a; zip -r o.zip a -t "{{x}}"',
    'fd -g "{{x}}"',
    'more -p "{{x}}"',
    'ed -s -- "{{x}}" < /dev/null',
    'rsync -- a "{{x}}"',
    'rsync a "{{y}}@{{x}}:b"',
    'scp a "{{x}}:b"',
    'touch a; install "{{x}}" a b',
    'mytool -v "{{x}}"',
    'docker run -t "{{x}}" alpine',
    'kubectl logs -f "{{x}}"',
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
    from toolreeve.scripted.template import ValueRules

    assert canaries(compile_script('bash -c "{{x}}"', {"x": ValueRules(allow_code=True)}))
