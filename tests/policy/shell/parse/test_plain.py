import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.shell.test_against_shfmt import disagree
from toolreeve.policy.shell.parse.grammar import FORMS
from toolreeve.policy.shell.parse.plain import plain
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import (
    Assignment,
    Expansion,
    Opaque,
    Part,
    Redirect,
    ShellPipeline,
    ShellScript,
    Simple,
    Step,
    Template,
)
from toolreeve.policy.shell.parse.tree import TreeReader

PIECES = st.sampled_from(
    "ls a b.c -n --x=y a=b if then done time ! 1 . 'a b' '' \"c d\" \"$x\" 'e'f | || && & ; ;; \n { } ( ) # > < [ ~ * "
    '\\ export let [[ a:b 2 é $y ${z} "u ${v}" *.c [ab]? ~/h {j,k} {} \\; \\( >f >>g <h 2>/dev/null 2>&1 &>l 2>&- x=$w '
    "$(i) \"$(m 'n' o)\" <(p|q) ${r%s} $((3)) `t` << == @ %".split(" ")
)
COMMANDS = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", " ", "\t", "  "]))).map(
    lambda found: "".join(piece + blank for piece, blank in found)
)


def simple(node: object) -> list[Simple]:
    """The commands in the order in which they are written: how a list is nested is the parser's own affair."""
    if isinstance(node, Opaque):
        raise Unreadable(node.why)
    inner = [found for part in node for found in simple(part)] if isinstance(node, tuple) else []
    return [node, *inner] if isinstance(node, Simple) else inner


def test_a_command_of_plain_words_needs_no_grammar() -> None:
    searching = Simple(("grep", "-n", "a b", "x.py"), source="grep -n 'a b' x.py")
    sorting = Simple(("sort",), source="sort")
    listing = Simple(("ls",), source="ls")

    found = plain("grep -n 'a b' x.py | sort && ls;")

    assert found == ShellScript((Step(ShellPipeline((searching, sorting)), "&&"), Step(listing, ";")))


def test_patterns_variables_redirections_and_commands_one_level_deep_need_none_either() -> None:
    counting = Simple(("wc", "-l"), (), (Redirect("<", "", "b"),), "wc -l")
    counted = Template((Part(Expansion.SUBSTITUTION, "", script=ShellScript((Step(counting, ";"),))),), "$(wc -l < b)")
    pattern = Template((Part(Expansion.GLOB, "*"), Part(None, ".c")), "*.c")
    quoted = Template((Part(None, "", quoted=True), Part(Expansion.VARIABLE, "a", quoted=True)), '"$a"')

    found = plain('a=$(wc -l < b); ls *.c "$a" > d 2>&1')

    redirects = (Redirect(">", "", "d"), Redirect(">&", "2", "1"))
    assert found == ShellScript(
        (
            Step(Simple((), (Assignment("a", (counted,)),), (), "a=$(wc -l < b)"), ";"),
            Step(Simple(("ls", pattern, quoted), (), redirects, 'ls *.c "$a"'), ";"),
        )
    )


@pytest.mark.parametrize("start", ["", "ls ", "ls *", 'echo "', "echo $(", "cat <(", "x=", "find \\( "])
@pytest.mark.parametrize("filling", ["a", "a ", "*a", "$a", "[a", "{a", "a;", "'", '"$(', ">f ", '<f>g 1 "a$x"'])
def test_a_long_text_that_turns_out_not_to_be_plain_is_given_up_at_once(start: str, filling: str) -> None:
    assert plain(start + filling * (60_000 // len(filling)) + "(") is None


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls &",
        "a |& b",
        "if",
        "time ls",
        "a'b' c",
        "a && ",
        "| a",
        "a ;; b",
        "export x",
        ">f a",
        "a >f b",
        "a <<E\nE",
        "a $(b $(c))",
        "a `b`",
        "a $((1))",
        "a ${b%c}",
        "a #b",
        "(a)",
        "a 2>&-",
        "a b<(c)",
        "x=(1)",
        "x+=1",
        "*",
        "$a",
        "a {1..9}x\\",
    ],
)
def test_whatever_has_more_to_it_is_left_to_the_grammar(command: str) -> None:
    assert plain(command) is None


@given(COMMANDS)
@settings(max_examples=500, deadline=None)
def test_the_grammar_reads_every_plain_command_the_same_way(command: str) -> None:
    found = plain(command)
    if found is None:
        return
    try:
        assert simple(found) == simple(TreeReader(command, FORMS).script())
    except Unreadable:
        # The parser gives up on some odd names and operands that are words to bash, and to the other parser.
        assert not disagree(command)
