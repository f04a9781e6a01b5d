"""Texts that the parser reads otherwise than bash: what bash would run must be among what is predicted."""

import pytest

from tests.policy.shell.workspace import analysed, effects, runs_unasked


@pytest.mark.parametrize(
    "command",
    [
        "x=(a)#; rm x",
        "echo `ls '`; rm x; echo `'`",
        "echo `ls #`; rm x\n`",
        "echo `cat <<'E'\n`; rm x; echo `\nE\n`",
        "[ -f a & rm -f x ]",
        "[ a | sh -c ls ]",
        "[ a > f ]",
        "[ a ; rm x ]",
        "[[ a<(rm -f x) == a ]]",
        "[[ 1<(rm) ]]",
        "for i in '.'\\./x; do cat $i; done",
        "x=(a'b'\\c); cat x",
        "{/usr/bin/ls a\n}",
        "cat a <& -x",
        "rm a 2>& -x",
        "sh -c 'ls a 12>f'",
    ],
)
def test_what_only_looks_like_a_form_is_not_known(command: str) -> None:
    assert not runs_unasked(command)
    assert not analysed(command).known


@pytest.mark.parametrize(
    "command",
    [
        "cat <<E | cat <<F\nE\nF\nrm x\nE",
        "cat <<E | cat <<'F'\n$(rm x)\nE\nF\nE",
        "cat <<E |\necho '\nE\nrm x #'\nE",
        "cat <<E | (\necho '\nE\nrm x #'\n)\nE",
        "cat <<E\n \\\nE\necho 'q\nE\nrm x #'",
        "cat <<'E'|x=(\n)\nE\ncat<<Q\nrm x\nQ",
        "cat <<-E | xargs cat\n/etc/hostname\nE",
        "cat <<E '.'\\./x\nE",
        "x=a; cat <<-E && x=b\nE\nrm $x",
        "cat <<E\n$API_KEY\nE",
        "((1 <<E\n)); rm x\nE",
        "a[1 <<E\n]=5; rm x\nE",
        "a[1<<E\n]=5; rm x\nE",
        "echo ${a[1 <<E\n]}; rm x\nE",
        "cat <(cat <<E\nrm x\n)\nE",
    ],
)
def test_a_heredoc_that_is_placed_oddly_is_not_known(command: str) -> None:
    assert not analysed(command).known


def test_a_word_that_touches_a_heredoc_is_not_lost() -> None:
    assert ("find", ".", "-delete") in [part.argv for part in analysed("find . -delete<<E\nE").parts]
    assert ("sort", "a", "-ob") in [part.argv for part in analysed("sort a -ob<<E\nE").parts]


@pytest.mark.parametrize(
    "command",
    [
        "[[ " + "& -" * 1330,
        '! echo "' + "$(ls)" * 735 + '"',
        "for a in 1 2 3 4; do for b in 1 2 3 4; do bash -c '! ls " + "[[ " * 1000 + "'; done; done",
        "echo " + "{a,b}" * 8 + "x" * 65_000,
        "cat <<E |& ls\nE\n" + "$(((" * 900,
    ],
)
def test_what_would_keep_the_parser_busy_is_given_up(command: str) -> None:
    assert not analysed(command).known


@pytest.mark.parametrize(
    "command",
    [
        "if [ -f x ]; then\ncat > y <<'EOF'\nhello $(rm x)\nEOF\nfi",
        "for f in a b; do\ncat > $f <<E\nhello $x\nE\ndone",
        "cat <<E |& sort\nb\nE\n",
        "cat<<E\na\nE",
        "[[ a < b && -f x ]] && ls",
        "[ -f x -a -d y ] || [ 1 -lt 2 ]",
        "{ ls; } | cat",
        "echo `ls -l`",
        "x=(a b); ls",
        "cat <<< hello",
    ],
)
def test_what_is_read_with_certainty_is_known(command: str) -> None:
    assert analysed(command).known, analysed(command).reason


@pytest.mark.parametrize(
    "command",
    [
        "env -u {A},touch,x} ls",
        "cat {a},/etc/passwd}",
        "find . -name {q},-delete}",
        "env -S sed -u '1e touch x' p f",
        "env -S 'sed s/a/b/' -i f",
        "echo <<ls $(case a in a)\nrm x\nls\n;; esac)\nls",
        "case'/run' in\na) ls;; esac",
        'for"a" in x; do ls; done',
        'unset"a"1 a',
        'declare""-x FOO=b',
        '!"/usr/bin/ls"',
        "![[ -f a && b ]]",
        "x=b=~/../../y; cat $x",
    ],
)
def test_words_that_bash_joins_or_pairs_otherwise_are_not_known(command: str) -> None:
    assert not analysed(command).known


def test_a_command_inside_a_case_in_quotes_is_seen() -> None:
    found = analysed('echo "$(case a in a) echo " <<\'E\'\n"; rm x; echo "\nE\n";; esac)"')

    assert not found.known or ("rm", "x") in [part.argv for part in found.parts]


@pytest.mark.parametrize(
    "command",
    [
        "! cd a/b && cat ../../etc/passwd",
        "cd src && ! cd none && cat ../../x",
        "env -S 'bash' -- -c 'ls'",
        "env -S $'ls\\x1c./run'",
        "pytest --help",
        "mvn --version",
        "cat a={~/../../../notes,b}",
        "'time' cd src && cat ../../x",
        "unsetenv x",
    ],
)
def test_where_a_command_runs_and_what_it_is_given_is_not_taken_for_granted(command: str) -> None:
    assert not runs_unasked(command) or "read:/etc/passwd" in effects(command) or "read:/x" in effects(command)
