"""The reading against bash itself: what is known of random commands is run where no program exists.

Bash then calls a function of ours with the words that it would have run a program with, in the directory where it is.
"""

import os
import random
import subprocess
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from toolreeve.core.effects import EffectKind
from toolreeve.policy.shell.analysis import Analysis, analyse

RECORDING = """
enable -n echo test [ true false pwd kill type
command_not_found_handle() { printf '%s\\0' "$PWD" "$#" "$@" >&"$LOG"; echoed; return $((RANDOM % 2)); }
echoed() { case $((RANDOM % 4)) in 0) printf 'a\\n';; 1) printf '%s b\\n' -n;; 2) printf 'rm\\n';; esac; }
"""
PROGRAMS = "ls cat echo grep head wc tee rm".split()
WORDS = [
    *"a b -n -- - 1 2 12 x.c sub ./a == = a==b a=b=c =~ -a=b # a#b @ % ^ + : , é {} { } ] [ !".split(),
    *"if then do done in <<<a >&'$x' >/dev/null {fd}>f 0<f 2>&1".split(),
    *'$x ${x} $HOME "$x" \'a\' \'\' "" "a$x" $x* * *.c [ab] [!a]* [^a] [[:alpha:]] ? ** [a a] {a,b} {1..3}'.split(),
    *"{3..1} {a,{b,c}} {{a,b} {a{b,c}} {,} {a,}b {a,'b'} ~ ~/h a~ a=~/h --f=~/h '~'/a \\~ $'a' $'a\\'b' a&>f".split(),
    *"$'\\u00e9' 'é'* \\a \\$x \\* '*' \"\\$x\" \"\\a\" $? $# $$ $1 $@ \"$@\" $_ \\; \\( \\) $ '$'".split(),
    *'$(ls) "$(ls)" `ls` $((1+2)) <(ls) $(echo $(ls)) >f >>f <a 2>f &>f 12>f >&f >|f 2&>f'.split(),
    *("'a b'", "a\\ b", '"a\nb"', "\\\n", "a\\ \\\n", "> f", "<<E\nt\nE", "<<'E'\n$x\nE", '<<"E""E"\nEE\nls\nE'),
]
ASSIGNMENTS = "x=rm x=ls x=a y=$x x=$y x=~/h x=a:~/h x={a,b} x=* FOO=a x=$(ls) x=(a) x='a b'".split(" ")
STATEMENTS = [
    *("cd sub", "cd ..", "cd missing", "$x a", "cat $x", 'cat "$x"', "{ x=rm; }", "(x=rm)", "{ x=ls; } < missing"),
    *("if x=rm; then y=ls; fi", "if cd sub; then ls; fi", "for x in ls rm; do $x a; done", "unset x", "read x < a"),
    *("while x=ls; do y=rm; break; done", "case a in a) x=rm;; *) x=ls;; esac", "for x; do rm; done", "x=ls true"),
    *("for i in a b; do $x a; x=ls; done", "for i in a b; do x=ls; continue; x=rm; done", "export FOO=rm; $FOO a"),
    *("echo $((1/0))", "! x=rm", "x=rm | cat", "[ -f a ]", "[[ a == b* ]]", "while cd sub; do ls; break; done"),
]
JOINTS = ["; ", ";", "\n", "\n\n", " && ", " || ", " | ", "|\n", " |& ", " & ", "&", " #c\n", "#c\n", " &&\n", " \\\n"]


def command(chance: random.Random) -> str:
    text = ""
    for _ in range(chance.randint(1, 4)):
        text += chance.choice(JOINTS) if text else ""
        kind = chance.random()
        text += simple(chance) if kind < 0.6 else chance.choice(STATEMENTS if kind < 0.8 else ASSIGNMENTS)
    return text


def simple(chance: random.Random) -> str:
    words = [chance.choice(PROGRAMS), *(chance.choice(WORDS) for _ in range(chance.choice([0, 1, 1, 2, 3])))]
    if chance.random() < 0.1:
        words.insert(0, chance.choice(ASSIGNMENTS))
    return "".join(word + chance.choice(["", " ", " ", " ", " ", "  ", "\t"]) for word in words)


def listing(root: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.lstat()) for path in root.rglob("*"))
    return {str(path): (state.st_size, state.st_mtime_ns) for path, state in found if not path.is_dir()}


def furnish(root: Path) -> None:
    (root / "sub").mkdir(parents=True)
    for name in ("a", "b", ".env", "-rf", "1", "x.c", "sub/c"):
        (root / name).write_text("rm\n")


def run(text: str, root: Path, setting: Path) -> list[tuple[str, list[str]]]:
    """Where and with which words bash would have run programs, those it leaves behind included."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as log:
        subprocess.run(
            ["/bin/bash", "--norc", "--noprofile", "-c", text],
            cwd=root,
            env={"PATH": "/nowhere", "HOME": str(root / "home"), "BASH_ENV": str(setting), "LOG": str(writing)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[writing],
            timeout=20,
            check=False,
        )
        os.close(writing)
        fields = log.read().decode().split("\0")
    found = []
    while len(fields) > 1:
        count = int(fields[1])
        found.append((fields[0], fields[2 : 2 + count]))
        fields = fields[2 + count :]
    return found


def foreseen(part: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words are those of the part: `…` stands for any number, a pattern for what it matches."""
    if not part:
        return not words
    first, rest = part[0], part[1:]
    if first.endswith("…"):
        return any(foreseen(rest, words[at:]) for at in range(len(words) + 1))
    if not words:
        return False
    fits = words[0] == first or fnmatchcase(words[0], first) or words[0].startswith("/dev/fd/")
    return fits and (foreseen(rest, words[1:]) or (words[0] != first and foreseen(part, words[1:])))


def surprises(analysis: Analysis, root: Path, setting: Path) -> list[object]:
    before = listing(root)
    ran = run(analysis.command, root, setting)
    after = listing(root)
    written = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    writing = [effect for effect in analysis.effects if effect.kind is EffectKind.WRITE]
    return [
        *(
            words
            for _, words in ran
            if words[0] != "[" and not any(foreseen(part.argv, words) for part in analysis.parts)
        ),
        *(path for path in written if not any(effect.touches(path) for effect in writing)),
    ]


def test_bash_runs_and_writes_only_what_the_reading_of_a_command_says(tmp_path: Path) -> None:
    setting, root, chance = tmp_path / "setting", tmp_path / "project", random.Random(61)
    setting.write_text(RECORDING)
    furnish(root)
    known = 0
    for text in dict.fromkeys(command(chance) for _ in range(4000)):
        analysis = analyse(text, cwd=str(root), home=str(root / "home"), root=str(root))
        if analysis.known:
            known += 1
            assert surprises(analysis, root, setting) == [], text
    assert known > 300


def test_the_comparison_sees_a_wrong_reading(tmp_path: Path) -> None:
    setting, root = tmp_path / "setting", tmp_path / "project"
    setting.write_text(RECORDING)
    furnish(root)
    read = analyse("ls a", cwd=str(root), home=str(root / "home"), root=str(root))
    wrong = Analysis(**{name: getattr(read, name) for name in Analysis.__slots__} | {"command": "rm a > new"})

    assert surprises(wrong, root, setting) == [["rm", "a"], os.fspath(root / "new")]
