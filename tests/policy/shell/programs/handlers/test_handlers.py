"""The languages inside arguments: sed scripts, awk programs, find expressions, xargs, tar bundles, SQL."""

import pytest

from tests.policy.shell.workspace import analysed, effects, runs_unasked

SED_QUIET = [
    "p",
    "1,5p",
    "$d",
    "/a/,/b/d",
    "s/a/b/",
    "s|a|b|g",
    "s/a/b/2;s/c/d/I",
    "y/abc/xyz/",
    "$a text",
    "1i hello",
    ":a;N;$!ba;s/x/y/",
    "/^#/!d",
    "s/[^,]*,//",
    "\\,x,d",
    "1~2p",
    "0,/x/s//y/",
    "/a/{s/b/c/;p}",
    "$=",
    "5q",
    "l 3",
]
SED_LOUD = [
    "s/a/b/e",
    "1e touch x",
    "e",
    "w out",
    "1w out",
    "s/a/b/w out",
    "s/a/b/gw out",
    "W out",
    ":a w out",
    "b a\nw out",
    "M",
    "s/a/b",
    "/a",
    "s/[/]/w x/w out",
    "r .env",
]


@pytest.mark.parametrize("script", SED_QUIET)
def test_a_sed_script_that_only_edits_runs_unasked(script: str) -> None:
    assert runs_unasked(f"sed '{script}' x"), analysed(f"sed '{script}' x").reason


@pytest.mark.parametrize("script", SED_LOUD)
def test_a_sed_script_that_writes_or_runs_does_not(script: str) -> None:
    assert not runs_unasked(f"sed '{script}' x")


AWK_QUIET = [
    "{print $1}",
    "NR==1",
    "$3 > 100",
    '$1 == "a" {print; next}',
    "/a\\/b/",
    "{print $1/$2}",
    'BEGIN{FS=":"} {print $NF}',
    '{printf "%s\\n", $1}',
    "{ print ($1 > 2) }",
    "END { print NR }",
    "{ a[$1]++ } END { for (k in a) print k, a[k] }",
    "{ if ($1 ~ /x/) print }",
    '{gsub(/"/, ""); print}',
    "!seen[$0]++",
]
AWK_LOUD = [
    'BEGIN{system("x")}',
    '{print > "out"}',
    '{print $1 >> "out"}',
    '{print | "sh"}',
    'BEGIN{"x" | getline}',
    '{ getline < "/etc/shadow" }',
    '{print "a",\n"b" > "out"}',
    '{ if (1) /"/; system("x"); y="" }',
    '{ if (0) z; else /"/; system("x"); y="" }',
    '@load "x"',
    'BEGIN { f="system"; @f("x") }',
    'BEGIN{ARGV[1]="/etc/shadow"}',
    '{printf("%s", $1) > "out"}',
    'BEGIN{print ENVIRON["X"]}',
    '/[/]"/; {system("x")} /"/',
    '{print $/"/; system("x") "/"}',
]


@pytest.mark.parametrize("program", AWK_QUIET)
def test_an_awk_program_that_only_prints_runs_unasked(program: str) -> None:
    assert runs_unasked(f"awk '{program}' x"), analysed(f"awk '{program}' x").reason


@pytest.mark.parametrize("program", AWK_LOUD)
def test_an_awk_program_that_writes_runs_or_reads_elsewhere_does_not(program: str) -> None:
    assert not runs_unasked(f"awk '{program}' x")


@pytest.mark.parametrize(
    "expression",
    [
        "-delete",
        "-exec rm {} \\;",
        "-execdir touch x \\;",
        "-ok ls {} \\;",
        "-fprint out",
        "-fls out",
        "-exec {} \\;",
        "-exec sh -c '{}' \\;",
        "-exec sort -o {} x \\;",
        "-files0-from x",
        "$x",
        "-exec ls",
    ],
)
def test_find_that_runs_writes_or_deletes_does_not_run_unasked(expression: str) -> None:
    assert not runs_unasked(f"find . {expression}")


def test_find_with_a_script_is_judged_by_the_script() -> None:
    assert runs_unasked("find . -exec sh -c 'wc -l \"$1\"' _ {} \\;")
    assert not runs_unasked("find . -exec sh -c 'rm \"$1\"' _ {} \\;")


def test_xargs_gives_unknown_words_only_to_programs_that_no_flag_can_turn() -> None:
    assert runs_unasked("git ls-files -z | xargs -0 head -n 1")
    assert not runs_unasked("git ls-files -z | xargs -0 sort")
    assert not runs_unasked("curl -s https://example.com | xargs cat")


def test_a_bundle_of_tar_letters_is_understood() -> None:
    assert effects("tar tzf a.tgz") == ["read:/project/a.tgz"]
    assert effects("tar xzf a.tgz -C out") == ["read:/project/a.tgz", "write:/project/out"]


@pytest.mark.parametrize(
    ("statement", "quiet"),
    [
        ("SELECT 1", True),
        ("SHOW TABLES", True),
        ("SELECT 1; DROP TABLE x", False),
        ("WITH a AS (DELETE FROM b) SELECT 1", False),
        ("SELECT pg_read_file(1)", False),
        ("SELECT 1 INTO OUTFILE x", False),
        ("COPY a TO PROGRAM b", False),
        ("\\! sh", False),
        ("EXPLAIN ANALYZE DELETE FROM x", False),
    ],
)
def test_a_statement_runs_unasked_only_if_it_only_reads(statement: str, quiet: bool) -> None:
    assert runs_unasked(f"psql -c '{statement}' db") is quiet


def test_in_place_editing_is_a_write() -> None:
    assert effects("sed -i 's/a/b/' x") == ["read:/project/x", "write:/project/x"]


def test_secrets_of_a_cluster_are_listed_but_not_shown() -> None:
    assert runs_unasked("kubectl get secrets")
    assert not runs_unasked("kubectl get secret x -o yaml")
    assert not runs_unasked("kubectl get pods,secrets -o json")


@pytest.mark.parametrize(
    "command",
    [
        "env -u HOME bash -c 'cat $HOME/etc/shadow'",
        "env -i sh -c 'cat $HOME/etc/shadow'",
        "f=/x; watch 'cat $f/etc/shadow'",
        "sh -c 'grep -r secret .*'",
    ],
)
def test_a_shell_that_is_started_knows_less_than_the_one_that_starts_it(command: str) -> None:
    assert not runs_unasked(command)


def test_a_shell_that_misses_nothing_is_judged_by_its_text() -> None:
    assert runs_unasked("env -u LANG bash -c 'ls | head'")
    assert runs_unasked("watch 'df -h | head'")
    assert runs_unasked("sh -c \"grep 'a.*b' x\"")


def test_what_expr_computes_is_not_one_of_its_words() -> None:
    assert runs_unasked("expr 1 + 2")
    assert not runs_unasked("cat $(expr substr x/etc/shadow 2 11)")


def test_tar_takes_names_from_the_directory_it_is_sent_to() -> None:
    assert "read:/etc/shadow" in effects("tar c -C /etc shadow")
    assert "read:/project/src/a/b" in effects("tar c -C src -C a b")
    assert runs_unasked("tar c -C src main.py")


@pytest.mark.parametrize(
    "command",
    [
        "tar c -C /etc shadow",
        "tar dPf a.tar",
        "tar xPf a.tar",
        "tar x* -t",
        "tar tHf posix /etc/shadow",
        "tar -t -x -f a.tar",
        'tar tf "$archive"',
        "tar c @x",
        "tar c -T list",
        "tar c --files-from=list",
    ],
)
def test_tar_that_an_archive_a_list_or_a_name_can_turn_is_asked_about(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "jq -n 'import \"./o\" as $d; $d'",
        "jq -n env",
        "jq -n '$ENV.X'",
        "jq -f p.jq x.json",
        "jq -R --arg a ../* . f",
        "jq . /etc/shadow --args x",
        "jq . -- --arg /etc/shadow x",
        'jq "$program" x.json',
        "jq --args . *",
        "yq -s .a x.yaml",
        "yq id_rsa",
        "yq '$ENV.X' x.yaml",
        "yq 'eval(.a)' x.yaml",
        "sqlite3 d* 'select 1'",
        "sqlite3 file:/etc/x.db 'select 1'",
        "find . -name '*.db' -exec sqlite3 {} +",
        "curl file:/etc/shadow",
        "curl -g file:/etc/shadow",
        "curl @list",
        "ip link s lo down",
        "ip xfrm s f",
        "awk 1 /inet/tcp/0/example.com/80",
        'awk \'BEGIN{extension("./x.so", "f")}\'',
        "echo a | sed -e p list | xargs cat",
        "echo a | sed --debug p | xargs cat",
        "kubectl get s* -o yaml",
        "cd /srv && grep -d recurse x ..",
        "sed -e '#x\\' -e 'w out' f",
    ],
)
def test_a_word_that_makes_a_tool_read_or_do_more_is_asked_about(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize(
    "command",
    [
        "jq .env x.json",
        "jq '{env: .a, \"import\": .b}' x.json",
        "jq -n --args '$ARGS' a b",
        'jq --arg a "$x" .a x.json',
        "yq .a x.yaml",
        "sqlite3 -safe x.db 'select 1'",
        "curl https://example.com/a:/b",
        "dig example.com MX",
        "ip a s",
        "ip link show lo",
        "echo a | sed -n p | xargs cat",
        "kubectl get pods -o yaml",
    ],
)
def test_its_nearest_harmless_kin_is_known(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason


def test_a_name_in_capitals_is_contacted_like_any_other() -> None:
    assert effects("dig EXAMPLE.COM MX") == ["net:example.com"]
