import pytest

from tests.policy.shell.workspace import analysed, effects, runs_unasked
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.shell.programs.spec import program


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log --oneline -5 | head",
        "ls -la && pwd",
        "cat README.md | grep -i foo | sort | uniq -c | sort -rn",
        "find . -name '*.py' -not -path './.git/*' -print0 | xargs -0 grep -n TODO",
        'for f in *.md; do wc -l -- "$f"; done',
        "if [ -f x ]; then cat x; else echo none; fi",
        'while IFS= read -r line; do echo "$line"; done < notes.txt',
        "diff <(sort a) <(sort b)",
        "echo $(date +%F) 2>/dev/null",
        "cd src && ls | wc -l",
        "x=5; echo $x",
        "sed -n '1,20p' file.py",
        "awk -F, '{ sum += $2 } END { print sum }' data.csv",
        "timeout 5 env LC_ALL=C nice sort -u x",
        "curl -s https://example.com/api | jq .name",
        "/usr/bin/grep -c x y",
        "bash -c 'ls | head -3'",
    ],
)
def test_known_commands_that_only_read_run_unasked(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason


@pytest.mark.parametrize(
    "command",
    [
        "",
        "frobnicate",
        "./ls",
        "/tmp/ls",
        "/usr/bin/../bin/ls",
        "$x",
        "`which ls`",
        "l? -l",
        "ls; frobnicate",
        "ls & touch x",
        "echo $(touch x)",
        "cat <(touch x)",
        "echo x > y",
        "echo x >> y",
        "echo x &> y",
        "> y",
        "echo x > $y",
        "exec 3> x",
        "eval ls",
        "source x",
        ". x",
        "trap 'touch x' EXIT",
        "alias ls='rm'",
        "PATH=. ls",
        "LD_PRELOAD=./x.so ls",
        "export GIT_PAGER=sh; git log",
        "BASH_ENV=x bash -c ls",
        "LC_ALL=/tmp/x ls",
        "echo x > /dev/tcp/example.com/80",
        "x='a[$(touch y)]'; [[ $x -eq 1 ]]",
        "[[ -v a[$(touch y)] ]]",
        "printf -v 'a[$(touch y)]' x",
        "read 'a[$(touch y)]' <<< x",
        "wait -p 'a[$(touch y)]'",
        "compgen -W '$(touch y)'",
        "unset 'a[$(touch y)]'",
        "sort *",
        "sort $x",
        "ls | xargs sort",
        "echo x | xargs touch",
        "cat $x",
        "cat secret.env",
        "cat < .env",
        "cat .e*",
        "grep -r x ~/.ssh",
        "grep -r x /",
        "git show HEAD:.env",
        "cp .env x",
        "cat /proc/self/environ",
        "ps auxe",
        "date -f secret.env",
        "curl http://169.254.169.254/latest",
        "curl http://2130706433/",
        'curl "https://example.com/$(cat x)"',
        "git -C vendor/evil status",
        "cd vendor/evil && git status",
        "cd evil; ./ls",
    ],
)
def test_what_is_not_known_or_not_only_reading_never_runs_unasked(command: str) -> None:
    assert not runs_unasked(command)


def test_one_look_at_the_effects_covers_every_way_to_read_a_file() -> None:
    ways = ["cat .env", "cp .env x", "git show HEAD:.env", "grep -r . .", "cat < .env", "cat .e*", "base64 ./a/../.env"]

    assert [way for way in ways if not any(effect.touches("/project/.env") for effect in analysed(way).effects)] == []


def test_cd_changes_how_later_paths_resolve() -> None:
    assert effects("cd src && cat a") == ["read:/project/src", "read:/project/src/a"]


def test_a_cd_that_may_have_failed_leaves_both_places_possible() -> None:
    assert effects("cd src; rm a") == ["read:/project/src", "delete:/project/a", "delete:/project/src/a"]


@pytest.mark.parametrize(
    "command",
    [
        "cd none && ls; cat a",
        "cd none && ls || cat a",
        "cd none && ls\ncat a",
        "cd none && ls > /dev/null; cat a",
        "cd none && cd other && ls; cat a",
        "{ cd none && ls; }; cat a",
    ],
)
def test_a_chain_whose_cd_fails_leaves_the_rest_where_it_was(command: str) -> None:
    assert {"read:/project/a", "read:/project/none/a"} <= set(effects(command))


def test_a_cd_in_a_subshell_or_pipeline_does_not_last() -> None:
    assert effects("(cd src && ls); cat a")[-1] == "read:/project/a"
    assert effects("cd src | ls; cat a")[-1] == "read:/project/a"


def test_what_find_found_is_bounded_by_where_it_looked() -> None:
    found = [effect for effect in analysed("find docs -type f -exec cat {} +").effects if effect.reach is Reach.BELOW]

    assert found == [Effect(EffectKind.READ, "/project/docs", Reach.BELOW)]


def test_the_host_is_an_effect() -> None:
    assert effects("curl -s https://api.example.com:8443/x") == ["net:api.example.com"]


def test_each_command_is_a_part_with_its_reason() -> None:
    parts = analysed("ls | frobnicate --all").parts

    assert [(part.argv, part.known) for part in parts] == [(("ls",), True), (("frobnicate", "--all"), False)]
    assert parts[1].why == "no specification of `frobnicate`"


def test_a_wrapper_and_the_command_it_runs_are_both_parts() -> None:
    assert [part.argv[0] for part in analysed("timeout 5 nice rm x").parts] == ["timeout", "nice", "rm"]


def test_a_loop_is_judged_with_each_value() -> None:
    assert effects("for f in a b; do rm $f; done") == ["delete:/project/a", "delete:/project/b"]


def test_a_variable_changed_in_a_loop_is_not_believed() -> None:
    assert not analysed("x=a; while true; do cat $x; x=b; done").known


@pytest.mark.parametrize(
    ("command", "danger"),
    [
        ("git status", DangerLevel.SAFE),
        ("touch x", DangerLevel.MEDIUM),
        ("echo x > sub/y", DangerLevel.MEDIUM),
        ("touch /etc/x", DangerLevel.HIGH),
        ("rm x", DangerLevel.HIGH),
        ("frobnicate", DangerLevel.HIGH),
        ("cat .env", DangerLevel.HIGH),
        ("sudo ls", DangerLevel.HIGH),
        ("git push --force", DangerLevel.HIGH),
        ("echo x > .git/hooks/pre-commit", DangerLevel.HIGH),
        ("rm -rf /", DangerLevel.CRITICAL),
        ("rm -rf ~", DangerLevel.CRITICAL),
        ("rm -rf .", DangerLevel.CRITICAL),
        ("rm -rf *", DangerLevel.CRITICAL),
        ("rm -rf ../..", DangerLevel.CRITICAL),
        ("rm -rf .git", DangerLevel.CRITICAL),
        ("cd / && rm -rf *", DangerLevel.CRITICAL),
        ("find / -delete", DangerLevel.CRITICAL),
        ("dd if=/dev/zero of=/dev/sda", DangerLevel.CRITICAL),
        ("env sudo rm -rf /", DangerLevel.CRITICAL),
    ],
)
def test_danger_follows_from_what_the_command_does(command: str, danger: DangerLevel) -> None:
    assert analysed(command).danger is danger


def test_the_reason_names_the_worst_thing() -> None:
    assert analysed("git push --force").reason == "rewrites shared history"
    assert analysed("ls; rm -rf /").reason == "deletes everything below /"
    assert analysed("frobnicate").reason == "not known: no specification of `frobnicate`"


def test_a_repeated_command_is_listed_each_time() -> None:
    found = analysed("cat x | sort; frobnicate; cat x | sort; frobnicate")

    assert [part.argv[0] for part in found.parts] == ["cat", "sort", "frobnicate"] * 2
    assert [part.known for part in found.parts] == [True, True, False] * 2


def test_a_command_that_repeats_elsewhere_is_judged_again() -> None:
    targets = [effect.target for effect in analysed("cat x; cd sub && cat x; grep a x | cat; cat x | cat").effects]

    assert "/project/x" in targets
    assert "/project/sub/x" in targets


def test_commands_that_look_alike_are_read_each_for_itself() -> None:
    assert effects("head -n 3 a") == ["read:/project/a"]
    assert effects("head -n b c") == ["read:/project/c"]
    assert effects("head -n 3 a c") == ["read:/project/a", "read:/project/c"]
    assert effects("sort -o a b")[:2] == ["write:/project/a", "read:/project/b"]
    assert effects("sort -o c d")[:2] == ["write:/project/c", "read:/project/d"]
    assert not analysed("sort -o").known
    assert not analysed("sort --compress-program=x a").known


def test_no_name_that_is_asked_for_is_kept_for_ever() -> None:
    for number in range(3000):
        analysed(f"unheard-of-{number} a; aws of-nothing-{number} list; git unheard-of-{number}")

    aws = program("aws")
    assert aws is not None
    assert len(aws.subs) <= 256


def test_what_a_wrapper_runs_is_listed_with_its_wrapper() -> None:
    parts = analysed("timeout 5 nice ls && ls").parts

    assert [(part.program, part.by, part.depth) for part in parts] == [
        ("timeout", "", 0),
        ("nice", "timeout", 1),
        ("ls", "nice", 2),
        ("ls", "", 0),
    ]


def test_one_secret_among_many_files_is_seen() -> None:
    names = " ".join(f"src/file{number}.py" for number in range(50))

    assert analysed(f"cat {names}").danger is DangerLevel.SAFE
    assert analysed(f"cat {names} .env").reason == "reads /project/.env, which may hold secrets"
    assert analysed(f"cat {names} 'a\n.pem'").danger is DangerLevel.HIGH
