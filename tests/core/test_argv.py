import shlex
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolreeve.core.argv import split
from toolreeve.core.errors import ErrorCode, ToolError


def refused(command: str) -> str:
    with pytest.raises(ToolError) as caught:
        split(command)
    assert caught.value.code is ErrorCode.CMD_NOT_ALLOWED
    return caught.value.message


def test_quotes_and_escapes_mean_what_they_mean_in_a_shell() -> None:
    assert split(r"""grep -n 'a b' "c \"d\" \\ e" f\ g '' x"y"'z'""") == (
        (("grep", "-n", "a b", 'c "d" \\ e', "f g", "", "xyz"),),
    )


def test_pipelines_and_lists_are_parted() -> None:
    assert split("cat a|sort -u && echo 'x && y | z'") == (
        (("cat", "a"), ("sort", "-u")),
        (("echo", "x && y | z"),),
    )


@pytest.mark.parametrize(
    ("command", "at", "what"),
    [
        ("echo $(id)", 6, "'$('"),
        ('echo "$(id)"', 7, "'$('"),
        ("echo `id`", 6, "'`'"),
        ('echo "`id`"', 7, "'`'"),
        ("echo $HOME", 6, "'$H'"),
        ('echo "${HOME}"', 7, "'${'"),
        ("echo $'a'", 6, '"$\'"'),
        ('echo "$[1+1]"', 7, "'$['"),
        ("echo a; id", 7, "';'"),
        ("echo a\nid", 7, "'\\n'"),
        ("echo a & id", 8, "'&'"),
        ("false || id", 7, "'||'"),
        ("id |& cat", 4, "'|&'"),
        ("echo a > b", 8, "'>'"),
        ("cat < b", 5, "'<'"),
        ("cat <(id)", 5, "'<'"),
        ("(id)", 1, "'('"),
        ("ls *.py", 4, "'*'"),
        ("ls a?", 5, "'?'"),
        ("ls [ab]", 4, "'['"),
        ("ls ~/x", 4, "'~'"),
        ("ls a=~/x", 6, "'~'"),
        ("echo {a,b}", 6, "'{'"),
        ("echo # a", 6, "'#'"),
    ],
)
def test_what_a_shell_would_replace_or_do_is_refused_by_name_and_place(command: str, at: int, what: str) -> None:
    assert f"{what} at character {at}: " in refused(command)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "there is no program"),
        ("ls |", "there is no program at its end"),
        ("| ls", "there is no program before '|'"),
        ("ls && && ls", "there is no program before '&&'"),
        ("echo 'a", "a ' is never closed"),
        ('echo "a', 'a " is never closed'),
        ("echo a\\", "ends in a backslash"),
        ("A=1 ls", "would set a variable"),
        ("ls \0", "NUL"),
        ("ls \ud800", "not valid Unicode"),
        ("ls " + "x" * 100_001, "longer than"),
    ],
)
def test_what_is_no_command_is_refused(command: str, why: str) -> None:
    assert why in refused(command)


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1))
def test_every_argument_survives_quoting(words: list[str]) -> None:
    assert split(shlex.join(["echo", *words])) == ((("echo", *words),),)


@settings(max_examples=150)
@given(st.text("ab \t'\"\\$`|&;<>()*?[]~#{}=:!,.-@\n", max_size=14))
@example("a=~")
@example('"$"a')
@example('"a$\'b"')
@example("a\\\n b")
@example("{}a")
def test_what_is_accepted_means_to_bash_just_what_it_means_to_us(text: str) -> None:
    try:
        pipelines = split(f"shown {text}")
    except ToolError:
        return
    if len(pipelines) == 1 and len(pipelines[0]) == 1:
        script = f'shown() {{ printf "%s\\0" "$@"; }}; shown {text}'
        said = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
        expected = pipelines[0][0][1:] or ("",)
        assert said.stdout.decode().split("\0")[:-1] == list(expected)
