import pytest

from tests.policy.shell.workspace import analysed, runs_unasked
from toolreeve.policy.shell.parse.grammar import parse
from toolreeve.policy.shell.parse.syntax import Opaque, ShellScript, Simple, Step


def commands(node: object) -> list[tuple[object, ...]]:
    """The words of every simple command, wherever it is nested."""
    if isinstance(node, Simple):
        inner = [found for part in node for found in commands(part)]
        return [node.words, *inner]
    return [found for part in node for found in commands(part)] if isinstance(node, tuple) else []


def opaque(command: str) -> bool:
    def inside(node: object) -> bool:
        return isinstance(node, Opaque) or (isinstance(node, tuple) and any(map(inside, node)))

    return inside(parse(command))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls -l", [("ls", "-l")]),
        ("a; b & c\nd", [("a",), ("b",), ("c",), ("d",)]),
        ("a && b || c", [("a",), ("b",), ("c",)]),
        ("a | b |& c", [("a",), ("b",), ("c",)]),
        ("(a; { b; })", [("a",), ("b",)]),
        ("! a", [("a",)]),
        ("if a; then b; elif c; then d; else e; fi", [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ("while a; do b; done", [("a",), ("b",)]),
        ("for x in 1 2; do a; done", [("a",)]),
        ("case x in y) a;; *) b;; esac", [("a",), ("b",)]),
        ("cat <<E && b\nbody\nE\nc", [("cat",), ("b",), ("c",)]),
        ("a # b", [("a",)]),
        ("echo >out word", [("echo", "word")]),
    ],
)
def test_every_simple_command_of_a_compound_is_found(command: str, words: list[tuple[str, ...]]) -> None:
    assert commands(parse(command)) == words


def test_a_command_inside_a_substitution_is_found() -> None:
    assert ("rm", "x") in commands(parse('echo "a $(b `rm x`) c"')[0][0].node.words[1].parts)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "command",
    [
        "ls(){ touch x; }",
        "function f { a; }",
        "(( i++ ))",
        "for ((i=0;i<3;i++)); do a; done",
        "select x in a; do b; done",
        "a[0]=1",
        "a=([x]=1)",
        "echo ${x:=y}",
        "echo ${!x}",
        "echo ${x@P}",
        "echo ${a[$(touch x)]}",
        "echo $((x))",
        "echo $((a[$(touch x)]))",
        "echo $[1+1]",
        'echo $"x"',
        "echo x 1<> y",
        "echo 'unclosed",
        "if a; then b",
        "tou\\\nch x",
        "a\rb",
        "ls\u00a0-l",
        "ls \u202e-l",
        "a\0b",
        "cat <<E\n`touch x`\nE",
        "cat <<E\n$(touch x)\nE",
        "cat <<A <<B\na\nA\nb\nB",
        "coproc { a; }",
        "echo a{1..9999999}",
        "head -200>x",
        "[abc]",
        "[ -f x ]#c `touch x`",
        "[ -f x ]y $(touch x)",
        "! - 2>&1 ls",
        "! \\  \\ls",
        "--y=z",
        "@x=1 ls",
        "{}",
        "cat <<<s<(ls)",
        "cat <g`pwd`,",
        "done x",
        "echo a;;",
        "echo 'a'#b",
        "[l]s",
        "[[abc]]",
        "grep [:a]{2}\\(x\\){3} y",
        "grep -e {x}<f -e credentials b",
        "[ a ]; grep -e 0<f -e credentials b #",
        "cat a\\ \\\n.env",
        'echo a <<"E""E"\nEE\nrm x\nE',
        "echo hi >&'`touch x`'",
        "x='$(touch x)'; echo hi 1>&\"$x\"",
        'echo >&"a\\$x"',
        "head {{a,{b,c}}",
        "head a{b{c,d}}",
        "head {a\\,b},c}",
        "head {Z..a}",
        "cat <(ls {a,b}) c",
        "head x=~/h{a,b}",
        "head $'\\u00e9'",
        "head $'\\xe9'",
    ],
)
def test_what_is_outside_the_grammar_is_opaque_and_never_runs_unasked(command: str) -> None:
    assert opaque(command) or not analysed(command).known
    assert not runs_unasked(command)


def test_a_command_longer_than_the_limit_is_not_even_parsed() -> None:
    assert parse("a" * 70_000) == ShellScript((Step(Opaque("longer than 64 KB", "a" * 70_000), ";"),))


@pytest.mark.parametrize(
    "senseless",
    ["ls " + ">" * 60_000, "a|" * 30_000 + "(", "x=(" * 20_000, "a`>~" * 15_000 + "|", "(" + "|-" * 30_000 + "}"],
)
def test_what_would_keep_the_parser_busy_for_minutes_is_not_read(senseless: str) -> None:
    (step,) = parse(senseless).steps

    assert isinstance(step.node, Opaque)
    assert step.node.why == "too much in one command to be read with certainty"


def test_a_long_file_that_is_written_in_a_command_is_read() -> None:
    (step,) = parse("cat > a.py <<'END'\n" + "print('a rather usual line')  # of a program\n" * 200 + "END").steps

    assert not isinstance(step.node, Opaque)


def test_a_list_as_long_as_the_limit_allows_is_read_without_recursion() -> None:
    assert len(commands(parse("a && " * 800 + "b"))) == 801


def test_deep_nesting_is_refused_rather_than_followed() -> None:
    assert not analysed("(" * 500 + "ls" + ")" * 500).known
    assert not analysed("echo " + "$(echo " * 200 + ")" * 200).known


@pytest.mark.parametrize("before", ["", "(ls); ", "ls # all\n"])
@pytest.mark.parametrize(
    "command",
    [
        "cat a | sort | echo\nrm -rf x 2>&1",
        "ls | cat | xargs echo b\nrm -rf x 2>&1",
        "cat a | sort | echo b\n\n  rm -rf x 2>/dev/null",
        "cat a | sort | cat <<<b\nrm -rf x 2>&1",
        "cat a | sort | ! echo b\nrm -rf x 2>&1",
        "cat a | sort | export A=b\nrm -rf x 2>&1",
        "cat a | sort | A=b\nrm -rf x 2>&1",
    ],
)
def test_a_command_ends_with_its_line_also_where_the_parser_reads_on(before: str, command: str) -> None:
    assert not runs_unasked(before + command)


def test_a_line_may_be_continued_after_an_operator_or_a_backslash() -> None:
    assert runs_unasked("(ls); cat a |\n sort &&\n echo \\\n b 2>&1")


def test_a_digit_before_both_outputs_is_no_descriptor() -> None:
    assert not analysed("echo x | tee 1&>/dev/null").known


def test_a_command_wrapped_over_and_over_is_not_followed() -> None:
    assert not analysed("xargs " * 5000 + "ls").known
    assert not analysed("env " * 5000 + "ls").known


def test_a_heredoc_ends_where_bash_ends_it() -> None:
    assert not runs_unasked("cat <<E\nbody\nE\ntouch x")
    assert runs_unasked("cat <<'E'\n$(touch x)\nE")
