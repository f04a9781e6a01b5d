import pytest

from toolreeve.policy.shell.extraction import deny_words, may_name


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
    ],
)
def test_a_deny_on_a_word_meets_it_however_it_is_written(command: str) -> None:
    assert may_name(command, "touch")


def test_a_command_without_the_word_is_not_met() -> None:
    assert not may_name("git status && ls -la src", "touch")


def test_paths_are_also_known_by_their_last_part() -> None:
    assert {"/usr/bin/touch", "touch"} <= deny_words("/usr/bin/touch x")
