import pytest

from tests.policy.shell.workspace import runs_unasked
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, expand
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.parse.grammar import parse
from toolreeve.policy.shell.parse.scanner import Unreadable, ansi
from toolreeve.policy.shell.parse.syntax import Simple


def words(command: str, **variables: Word) -> list[Word]:
    node = parse(command).steps[0].node
    assert isinstance(node, Simple), node
    return expand(node.words, ShellScope(("/project",), "/home/me", "/project", variables), lambda script: None)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("t''ouch", "touch"),
        ('"touch"', "touch"),
        ("\\touch", "touch"),
        ("$'\\x74ouch'", "touch"),
        ("$'\\164ouch'", "touch"),
        ("to'u'\"c\"h", "touch"),
        ("a\\ b", "a b"),
        ("'a b'", "a b"),
        ('"a\\"b"', 'a"b'),
        ('"a\\b"', "a\\b"),
        ("~/x", "/home/me/x"),
        ("~root/x", "/root/x"),
        ("a~", "a~"),
        ("{}", "{}"),
        ("{a}", "{a}"),
        ("'*'", "*"),
        ("\\*", "*"),
        ("é", "é"),
        ("$HOME/x", "/home/me/x"),
        ('"$PWD"', "/project"),
    ],
)
def test_a_word_means_what_bash_makes_of_it(written: str, meant: str) -> None:
    assert words(f"echo {written}") == ["echo", meant]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{a,b}", ["a", "b"]),
        ("x{a,b}y", ["xay", "xby"]),
        ("{1..3}", ["1", "2", "3"]),
        ("{01..03}", ["01", "02", "03"]),
        ("{a,{b,c}}", ["a", "b", "c"]),
        ("{a..c}", ["a", "b", "c"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{10..08}", ["10", "09", "08"]),
        ("{0..2}", ["0", "1", "2"]),
        ("{é,b}", ["é", "b"]),
    ],
)
def test_braces_make_several_words(written: str, meant: list[str]) -> None:
    assert words(f"echo {written}") == ["echo", *meant]


def test_a_glob_keeps_its_pattern_and_quotes_what_was_quoted() -> None:
    assert words("ls *.txt 'a*'?") == ["ls", Glob("*.txt"), Glob("a[*]?")]


@pytest.mark.parametrize("odd", ["[^a]", "[[:lower:]]", "[[=v=]]", "[[.v.]]", "[]v]", "[!]v]", "['v']"])
def test_a_class_that_matchers_read_differently_may_be_anything(odd: str) -> None:
    assert words(f"cat .en{odd}")[1] in (Glob(".en*"), Glob(".en[v]"))
    assert not runs_unasked(f"cat .en{odd}")


def test_a_pattern_beyond_ascii_is_text_and_not_bytes() -> None:
    assert words("cat é*")[1] == Glob("é*")
    assert words('cat "é$y"')[1] == Dynamic(prefix="é", single=True, flagless=True)


def test_what_a_pattern_lists_lies_below_where_it_begins() -> None:
    assert not runs_unasked("ls ~/.ss?/* | xargs cat")
    assert not runs_unasked("cat .*")


def test_a_variable_of_the_script_has_its_value_and_any_other_is_open() -> None:
    assert words('echo "$x" "$y"', x="v") == ["echo", "v", Dynamic(single=True)]


def test_an_unquoted_value_with_blanks_may_become_several_words() -> None:
    assert words("echo $x", x="a b") == ["echo", Dynamic(flagless=True)]


def test_a_variable_named_like_a_secret_cannot_be_read() -> None:
    with pytest.raises(Unreadable, match="API_TOKEN"):
        words('echo "$API_TOKEN"')


@pytest.mark.parametrize(
    ("body", "value"),
    [("\\n", "\n"), ("\\u0041", "A"), ("\\xc3", "\xc3"), ("\\501", "A"), ("a\\0b", "a"), ("\\'", "'"), ("\\q", "\\q")],
)
def test_ansi_quoting_is_decoded(body: str, value: str) -> None:
    assert ansi(body) == value
