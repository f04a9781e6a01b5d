"""A value or a directory counts only if bash surely has it there: what is counted on wrongly is a way past a rule."""

import pytest

from tests.policy.shell.workspace import analysed, effects, runs_unasked
from toolreeve.policy.shell.interpret.expansion import Dynamic
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.parse.scanner import Unreadable


@pytest.mark.parametrize(
    "command",
    [
        "x=rm; false && x=ls; $x -rf y",
        "x=rm\ntrue || x=ls\n$x -rf y",
        "x=rm; ls || true && x=ls; $x -rf y",
        "x=rm; x=ls && true & $x -rf y",
        "x=rm; { x=ls; } < missing; $x -rf y",
        "x=rm; if false; then x=ls; fi; $x -rf y",
        "x=rm; case a in b) x=ls;; esac; $x -rf y",
        "x=ls; for x in rm; do :; done; $x -rf y",
        "x=ls; while read x; do break; done < names; $x -rf y",
        "x=ls; while { y=$x; x=rm; }; do $y -rf z; done",
        "x=rm; for i in ls echo; do $x -rf y; continue; x=ls; done",
        "x=rm; for i in echo $x; do $i -rf y; continue; x=ls; done",
        "x=rm; local x=ls; $x -rf y",
        "FOO=ls; export FOO=rm; $FOO -rf y",
        "FOO=ls; FOO=rm :; $FOO -rf y",
        "sh -c 'FOO=ls; FOO=rm :; $FOO -rf y'",
        "readonly FOO=rm\nFOO=ls\n$FOO -rf y",
        "declare -r FOO=rm\nFOO=ls\n$FOO -rf y",
        "x=rm\necho $((1/0)); x=ls\n$x -rf y",
        "x=rm\necho $((08)); x=ls\n$x -rf y",
        "x=rm z=abc\necho ${z:0:-9}; x=ls\n$x -rf y",
        "x=rm z=abc\necho ${z[08]}; x=ls\n$x -rf y",
        "x=rm; shopt -s failglob\nls none*; x=ls\n$x -rf y",
        "shopt -s lastpipe; x=ls; echo rm | read x; $x -rf y",
        "_=ls; echo rm; $_ -rf y",
    ],
)
def test_no_assignment_is_counted_on_that_may_not_have_run(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "x=a; if true; then unset x; fi; cat $x/etc/shadow",
        "FUNCNAME=a; cat $FUNCNAME/etc/shadow",
        "x=a:~; cat $x/.ssh/config",
        'false && API_TOKEN=x; echo "$API_TOKEN"',
        "export POSIXLY_CORRECT=1",
        "POSIXLY_CORRECT=1 head a -n credentials",
        "shopt -s dotglob; cat *",
        "shopt -s nocaseglob; cat .EN[V]",
    ],
)
def test_no_variable_or_option_changes_what_is_read_unseen(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "if cd /etc; then cat shadow; fi",
        "case x in x) cd /etc;& y) cat shadow;; esac",
        "while true; do cat shadow; cd /etc; done",
        "cd /etc || cd /tmp && cat shadow",
        "true || cd /tmp && cd /etc; cat shadow",
        "shopt -s lastpipe; true | cd /etc; cat shadow",
        "cd /etc; cd /tmp; cat ~-/shadow",
        "cat ~1/shadow",
        "cat ~root/.config/x",
        "dd if=~/.bash_history",
    ],
)
def test_a_file_is_looked_for_wherever_the_shell_may_be(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize("variable", ["PATH", "LD_PRELOAD", "IFS", "HOME", "BASH_ENV"])
def test_a_loop_may_not_set_what_an_assignment_may_not(variable: str) -> None:
    assert not analysed(f"for {variable} in ./evil; do ls; done").known


@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'cat \"$@\"' x a .env",
        "bash -c 'shift; cat \"$1\"' x a .env",
        "bash -c 'for x; do rm -rf y; done' a b",
        "bash -c '$2 x' _ * ls",
        "bash -c 'cat \"$1\"' _ $(find . -name none) .env",
    ],
)
def test_a_script_is_given_all_of_its_parameters(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "sh -c \"echo \\$'a\\\\'; rm -rf x; #'\"",
        "sh -c '[[ a > b ]]'",
        "sh -c 'tee {a,b}' < /dev/null",
        "dash -c 'ls &>/dev/null'",
        "watch \"echo \\$'a\\\\'; rm -rf x; #'\"",
        "bash --posix -c 'echo a=~/x'",
    ],
)
def test_text_for_another_shell_must_mean_the_same_to_it(command: str) -> None:
    assert not analysed(command).known


@pytest.mark.parametrize(
    "command",
    [
        "echo .env | xargs -I X -I Y cat Y",
        "echo .env | xargs -I{} -n2 cat a",
        "echo .env | xargs -I{} -L1 cat a",
        "echo .env | xargs -I '' cat a",
        "echo .env | bash -c 'xargs cat'",
        "echo .env | echo $(xargs cat)",
        "echo .env | while true; do xargs cat; break; done",
        "ls | { xargs cat; } < list",
        "ls | xargs cat <&3",
        "ls none |& xargs cat",
        "ls none 2>&1 | xargs cat",
        "ls /etc/shadow | xargs cat",
        "ls $(cat list) | xargs cat",
        "ls -l --time-style='+ /etc/shadow' | xargs cat",
        "cat $(ls ~/.ssh/id_rsa)",
        "echo '\"/etc/shadow\"' | xargs cat",
        "echo '\\/etc/shadow' | xargs cat",
        "cat $(echo '.en?')",
        "echo a,/etc/shadow | xargs -d, cat",
        "echo .envx | head -c 4 | xargs cat",
        "echo a/.envx | grep -o '\\.env' | xargs cat",
        "find . | grep -A1 --group-separator=/etc/shadow x | xargs cat",
        "find . | sed 's,.*,/etc/shadow,' | xargs cat",
        "find . | awk '{print \"/etc/shadow\"}' | xargs cat",
        "find . -printf '/etc/shadow\\n' | xargs cat",
        "find . -exec echo /etc/shadow \\; | xargs cat",
        "fd --format /etc/shadow . | xargs cat",
        "fd . --search-path /etc -x cat",
        "fd . --base-directory /etc -x cat",
        "rg -o -r /etc/shadow x | xargs cat",
        "git ls-files --format=/etc/shadow | xargs cat",
    ],
)
def test_what_a_command_is_fed_with_is_not_taken_for_something_else(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "for f in a*.txt; do sort $f; done",
        "y=\"$(find . -name '*.c')\"; sort $y",
        "find . -exec sh -c 'sort $1' _ {} \\;",
        "timeout 5* ls",
    ],
)
def test_a_name_with_blanks_may_become_several_words(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "x=a && cat $x",
        "x=a; ls && cat $x",
        "cd src && cat a",
        "n=$((2+3)); head -n $n a",
        "for f in *.c; do wc -l -- $f; done",
        'for f in *.c; do wc -l -- "$f"; done',
        "while read x; do echo $x; done < a",
        "echo ${x: -1} ${#x} ${x[2]} ${x:1:2} $((6 / 2))",
        "sh -c 'cat a | head'",
        "find . -exec sh -c 'cat \"$1\"' _ {} \\;",
        "echo a | xargs -n1 -I{} cat {}",
        "find . -printf '%p\\0' | sort -z | head -z -n 3 | xargs -0 cat",
        "echo a b | sed -n 2p | awk 'NR==1 {print $1}' | xargs cat",
        "ls --zero src | xargs -0 cat",
        "rg -0l x | xargs -0 cat",
        "shopt -u dotglob; cat *",
    ],
)
def test_what_is_certain_still_counts(command: str) -> None:
    assert runs_unasked(command)


def test_a_value_given_before_a_tilde_is_a_path_in_the_home_folder() -> None:
    assert effects("dd if=a of=~/b") == ["read:/project/a", "write:/home/me/b"]


def test_a_value_that_braces_make_none_of_does_not_break_the_analysis() -> None:
    assert not analysed("FOO={,} ls").known
    assert not analysed("x={a,}; cat $x").known


def test_where_two_ways_meet_only_what_they_share_is_known() -> None:
    one = ShellScope(("/a",), "/home/me", "/a", {"x": "1", "y": "2"})
    other = ShellScope(("/b",), "/home/me", "/a", {"x": "1", "y": "3", "z": "4"})

    one.merge(other)

    assert set(one.directories) == {"/a", "/b"}
    assert one.variables == {"x": "1", "y": Dynamic(), "z": Dynamic()}


def test_a_scope_that_may_be_in_too_many_places_is_given_up() -> None:
    with pytest.raises(Unreadable, match="too many directories"):
        ShellScope(("/a", "/b", "/c", "/d"), "/home/me", "/a").add_directories(("/e",))


def test_loops_in_loops_are_not_walked_for_ever() -> None:
    values = " ".join(map(str, range(16)))
    nested = "".join(f"for v{depth} in {values}; do " for depth in range(8))

    assert not analysed(f"{nested} for z in {{,}}; do ls; done; {'done; ' * 8}").known
