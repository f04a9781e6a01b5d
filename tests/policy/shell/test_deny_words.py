import pytest

from toolreeve.policy.shell.deny_words import deny_words, may_name


@pytest.mark.parametrize(
    "command",
    [
        "touch x",
        "t''ouch x",
        '"touch" x',
        "\\touch x",
        "$'\\x74ouch' x",
        "$'\\164ouch' x",
        "env -S 'touch x'",
        "busybox touch x",
        "bash -c 'touch x'",
        "X=touch; $X y",
        "${nope-touch} x",
        "/usr/bin/tou?h x",
        "/bin/touc[h] x",
        "{touch,x}",
        "/usr/bin/../bin/touch x",
        "awk 'BEGIN{system(\"touch x\")}'",
        "git -c alias.x='!touch x' x",
        "printf 'to\\165ch x' | sh",
        "rev <<< 'x hcuot' | bash",
        "a='to'; b='uch'; $a$b x",
        "to\\\nuch x",
        "find . -exec touch {} +",
        "echo $(touch x)",
        "echo `touch x`",
        "'unclosed; touch x",
        "to$@uch x",
        'to"$@"uch x',
        "to$1uch x",
        "to$()uch x",
        "to``uch x",
        "to$(true)uch x",
        "to$(echo u)ch x",
        "to${x:+y}uch x",
        "to${!x}uch x",
        "to{u,v}ch x",
        "{t,x}{o,y}uch x",
        "t{o..p}uch x",
        "xargs -I{} {}ouch",
        "[^a]ouch x",
        "/usr/bin/t[[:alpha:]]uch x",
        'to$"u"ch x',
        "\"to\"'uch' x",
        'a=to; "$a"uch x',
        "for a in to; do ${a}uch x; done",
        "$'\\u0074ouch' x",
    ],
)
def test_a_deny_on_a_word_meets_it_however_it_is_written(command: str) -> None:
    assert may_name(command, "touch")


def test_a_command_without_the_word_is_not_met() -> None:
    assert not may_name("git status && ls -la src", "touch")
    assert not may_name('for f in *.c; do wc -l "$f" $(basename $f .c).h; done', "rm")


def test_paths_are_also_known_by_their_last_part() -> None:
    assert {"/usr/bin/touch", "touch"} <= deny_words("/usr/bin/touch x")


@pytest.mark.parametrize(
    "command",
    [
        "for x in " + "grep" * 15_000,
        "x=" + '>"$x"true"$x"' * 4_500,
        '${LD_PRELOAD=a"" ' * 3_500,
        "$(" * 30_000,
        "[" * 60_000,
        "{a," * 20_000,
        "$'" * 30_000,
        "*a" * 30_000,
    ],
)
def test_the_words_of_a_long_text_are_found_at_once(command: str) -> None:
    assert len(deny_words(command)) < 1000
    assert may_name(command + " touch", "touch")
