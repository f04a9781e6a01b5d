import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.policy.shell.grammar import FORMS
from toolreeve.policy.shell.plain import plain
from toolreeve.policy.shell.scan import Unreadable
from toolreeve.policy.shell.syntax import Pipeline, Script, Simple, Step
from toolreeve.policy.shell.tree import Reader

PIECES = st.sampled_from(
    "ls a b.c -n --x=y a=b if then done time ! 1 . 'a b' '' \"c d\" \"$x\" 'e'f | || && & ; ;; \n { } ( ) # > < [ ~ * "
    "\\ export let [[ a:b 2 é".split(" ")
)
COMMANDS = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", " ", "\t", "  "]))).map(
    lambda found: "".join(piece + blank for piece, blank in found)
)


def test_a_command_of_plain_words_needs_no_grammar() -> None:
    searching = Simple(("grep", "-n", "a b", "x.py"), source="grep -n 'a b' x.py")
    sorting = Simple(("sort",), source="sort")
    listing = Simple(("ls",), source="ls")

    found = plain("grep -n 'a b' x.py | sort && ls;")

    assert found == Script((Step(Pipeline((searching, sorting)), "&&"), Step(listing, ";")))


@pytest.mark.parametrize(
    "command",
    ["", "ls &", "a |& b", "a=b c", "if", "time ls", "a'b' c", 'a "$b"', "a && ", "| a", "a ;; b", "export x", "ls *"],
)
def test_whatever_has_more_to_it_is_left_to_the_grammar(command: str) -> None:
    assert plain(command) is None


@given(COMMANDS)
def test_the_grammar_reads_every_plain_command_the_same_way(command: str) -> None:
    found = plain(command)
    if found is not None:
        try:
            assert Reader(command, FORMS).script() == found
        except Unreadable as problem:
            raise AssertionError(command) from problem
