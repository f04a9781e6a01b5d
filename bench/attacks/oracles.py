"""Oracles of the shell analysis: what it predicts against what really happens.

`argv`: random words of quotes, braces, dollars and escapes are given to stub programs, which write down the words that
they receive: those must be the predicted ones. `flags`: random flags and operands of the installed programs run over a
small tree; what is allowed as only reading must leave the tree and the home directory as they were.

Both run as nobody in a private mount and network namespace, for a number of seconds, from a seed.
"""

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.attacks.outcome import Tally
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.core.verdict import Decision
from toolreeve.policy.shell.analysis import Analysis, analyse, decide_default
from toolreeve.policy.shell.programs import spec
from toolreeve.policy.shell.programs.spec import Program

SECONDS = float(os.environ.get("ORACLE_SECONDS", "10"))
SEED = int(os.environ.get("ORACLE_SEED", "1"))
_NOBODY = 65534
_STUBS = ("uniq", "wc", "grep", "head", "sort", "cut", "tr")
_END = "end of call"
_STUB = f'#!/bin/dash\nprintf "%s\\0" "${{0##*/}}" "$@" "{_END}" >>"$LOG"\n'
_RUN = 'while IFS= read -r -d "" LOG && IFS= read -r -d "" C; do export LOG; (eval "$C") </dev/null >&2; done'
_BATCH = 400
_PIECES = (
    '""', '"$"', '"x$"', '"a$ b"', '"$x"', "'\"'", '"{"', "','", '"}"', "'{'", '"\\""', "'$'",
    "a", "b ", "-n", "{", "}", ",", "..", "{a,b}", "{1..3}", "$", "$x", "${x}", "\"", "\"", "'", "'", "\\",
    "\\\n", " ", " ", "\t", "~", "*", "?", "[a]", "$'", "\\n", "\\x41", "$\"", "`", "$(uniq a)", "$(", ")", "#",
    " #", ";", "|", "&&", "\n", "=", "x=1 ", "!", "<<<", "<", "é", ":", "%", "^", "@", "(", "((", "$((1+1))",
    "{}", "\\\"", "\\'", "uniq ", "cat ", "if", " <<E\n", " << 'E'\n", "\nE\n", "\"$(cat <<'E'\nit's\nE\n)\"",
    "\"$(cat <<E\n", "\nE\n)\"",
)  # fmt: skip
_LEFT_OUT = frozenset(
    "sleep yes watch top tail less more man vmstat iostat ping script fg wait bash sh dash zsh ksh reboot shutdown "
    "halt poweroff kill killall pkill sudo su doas nohup setsid busybox xargs find".split()
)
"""Programs that wait, that stop others, or that run what they are given."""
_WORDS = (
    "a.txt", "b.txt", "src", "src/main.py", "data.json", "x.db", "a.tgz", "a.gz", "a.zip", "new", "-", "--",
    ".", "1", "5", "-c", "-h", "-p", "-o", "--help", "--version", "HEAD", "p", "w new", "1,2p", "s/a/b/",
    "{print $1}", "select 1", "x=1", "%s", "%n", "file", "list", ".a", "utf8", "*", "./*", "'w new'", "$x",
    "/tmp/o",
)  # fmt: skip
_WRITING = frozenset("write output tree replace move delete deltree parents database".split())
_LANGUAGES = frozenset("sed awk query tar unpack jq yq one_task printf".split())
_TREE = {
    "a.txt": "b\na\n",
    "b.txt": "a\nc\n",
    "src/main.py": "print(1)\n",
    "data.json": '{"a": [1, 2]}\n',
}


async def argv(_: Path | None) -> list[Tally]:
    return [_tally("argv: words as programs receive them", "argv")]


async def flags(_: Path | None) -> list[Tally]:
    return [_tally("flags: a tree and a home after random commands", "flags")]


def _tally(name: str, oracle: str) -> Tally:
    command = [*_confined(), sys.executable, "-m", "bench.attacks.oracles", oracle, str(SECONDS), str(SEED)]
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o777)
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "BASE": base, "LC_ALL": "C.UTF-8"}
        root = Path(__file__).parent.parent.parent
        ran = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    tried, ran_count = found["generated"], found["ran"]
    name = f"{name} (seed {SEED}, {SECONDS:g} s)"
    return Tally(name=name, payloads=tried, attempts=ran_count, harmless=ran_count, escaped=found["wrong"])


def _confined() -> list[str]:
    if os.getuid():
        return ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--"]
    as_nobody = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--no-new-privs", "--"]
    return ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", *as_nobody]


def _allowed(command: str, root: str, home: str) -> Analysis | None:
    found = analyse(command, cwd=root, home=home, root=root)
    return found if decide_default(found).decision is Decision.ALLOW else None


class _Words:
    """The oracle of words: commands are run by one bash, in batches."""

    def __init__(self, base: Path, chance: random.Random) -> None:
        self._base = base
        self._chance = chance
        self._bin = base / "bin"
        self._bin.mkdir()
        for name in _STUBS:
            (self._bin / name).write_text(_STUB)
            (self._bin / name).chmod(0o755)
        (self._bin / "cat").symlink_to("/bin/cat")  # for heredocs in substitutions
        (base / "work").mkdir()

    def generate(self) -> str:
        count = self._chance.randint(2, 9)
        return f"{self._chance.choice(_STUBS)} " + "".join(self._chance.choice(_PIECES) for _ in range(count))

    def check(self, commands: dict[str, Analysis]) -> list[str]:
        logs = self._base / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        given = "".join(f"{logs}/{at}\0{command}\0" for at, command in enumerate(commands))
        subprocess.run(
            ["/bin/bash", "--norc", "-c", _RUN],
            input=given.encode(),
            cwd=self._base / "work",
            env={"PATH": str(self._bin), "HOME": str(self._base), "LC_ALL": "C.UTF-8"},
            stderr=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        wrong = [
            f"{command!r}: received {seen}, predicted {sorted(map(list, _predicted(found)))}"
            for at, (command, found) in enumerate(commands.items())
            if not _agree(seen := _received(logs / str(at)), found)
        ]
        wrong += [f"a command of {list(commands)[:3]}… made {made.name}" for made in (self._base / "work").iterdir()]
        shutil.rmtree(self._base / "work")
        (self._base / "work").mkdir()
        return wrong


def _received(log: Path) -> list[list[str]]:
    if not log.exists():
        return []
    calls = log.read_bytes().decode("utf-8", "replace").split(f"\0{_END}\0")
    return [call.split("\0") for call in calls if call]


def _predicted(found: Analysis) -> Iterator[tuple[str, ...]]:
    for part in found.parts:
        if part.argv and part.argv[0] in _STUBS:
            yield part.argv


def _agree(seen: list[list[str]], found: Analysis) -> bool:
    """Every call that was received is one of those predicted; a word that only the run decides may be anything."""
    predicted = [list(argv) for argv in _predicted(found)]
    open_names = {argv[0] for argv in predicted if any("…" in word or set(word) & set("*?[") for word in argv)}
    return all(call in predicted or call[0] in open_names for call in seen)


class _Flags:
    """The oracle of flags: each command runs by itself over a tree that is compared with its snapshot."""

    def __init__(self, base: Path, chance: random.Random) -> None:
        self._chance = chance
        self.root, self.home = base / "work", base / "home"
        self.home.mkdir()
        self._build()
        found = [name for name in spec.names() if shutil.which(name) and name not in _LEFT_OUT]
        local = [name for name in found if (program := spec.program(name)) is not None and not program.net]
        self._names = local
        self._writers = [name for name in local if _may_write(name)]

    def _build(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        for name, text in _TREE.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        quiet = {"cwd": self.root, "check": False, "capture_output": True, "env": {**os.environ, "HOME": "/nowhere"}}
        for words in (
            ("tar", "czf", "a.tgz", "a.txt"),
            ("gzip", "-k", "b.txt"),
            ("mv", "b.txt.gz", "a.gz"),
            ("sqlite3", "x.db", "create table a (b)"),
            ("git", "init", "-q"),
            ("git", "add", "."),
            ("git", "-c", "user.name=x", "-c", "user.email=x@y.example", "commit", "-qm", "x"),
        ):
            if shutil.which(words[0]):
                subprocess.run(words, **quiet)  # type: ignore[call-overload]

    def generate(self) -> str:
        names = self._writers if self._chance.random() < 0.85 else self._names
        program = spec.program(name := self._chance.choice(names))
        words = [name]
        while program is not None and program.data.get("sub") and self._chance.random() < 0.9:
            sub = self._chance.choice(" ".join(program.data["sub"]).split())
            words.append(sub)
            program = program.sub(sub)
        known: Program = program or spec.program(name)  # type: ignore[assignment]
        for _ in range(self._chance.randint(0, 4)):
            words.append(self._word(known))
        return " ".join(words)

    def _word(self, program: Program) -> str:
        listed = [flag for flag in program.flags if flag.isprintable()]
        if not listed or self._chance.random() < 0.45:
            return self._quoted(self._chance.choice(_WORDS))
        flag = self._chance.choice(listed)
        how = self._chance.random()
        if how < 0.6:
            return flag
        if how < 0.7:
            return f"{flag} {self._chance.choice(listed)}"
        if how < 0.8:
            return f"{flag} {self._quoted(self._chance.choice(_WORDS))}"
        return f"{flag}{'=' if flag.startswith('--') else ''}{self._quoted(self._chance.choice(_WORDS))}"

    @staticmethod
    def _quoted(word: str) -> str:
        return word if word in ("*", "./*", "$x") or word.isalnum() else "'" + word.strip("'") + "'"

    def check(self, commands: dict[str, Analysis]) -> list[str]:
        wrong = []
        before = snapshot(self.root, self.home)
        for command, found in commands.items():
            _run_alone(command, self.root, self.home)
            after = snapshot(self.root, self.home)
            if after != before:
                changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
                untold = [path for path in changed if not _told(path, found)]
                wrong += [f"{command!r} changed {untold}"] if untold else []
                self._build()
                before = snapshot(self.root, self.home)
        return wrong


def _may_write(name: str) -> bool:
    """Whether a flag, an operand or a language of the program can change files."""
    program = spec.program(name)
    if program is None:
        return False
    roles = {*program.flags.values(), *(operand.rstrip("*?+") for operand in program.operands)}
    return bool(roles & _WRITING) or program.handler in _LANGUAGES


def _run_alone(command: str, root: Path, home: Path) -> None:
    run = subprocess.Popen(
        ["/bin/bash", "--norc", "-c", command],
        cwd=root,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        run.wait(1)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)
        run.wait()


def snapshot(*places: Path) -> dict[str, tuple[int, int, int]]:
    """Mode, size and time of every file; of a directory only the mode. Git refreshes its index when it only looks."""
    found = {}
    for place in places:
        for directory, _, names in os.walk(place):
            mode = os.lstat(directory).st_mode
            found[directory] = (stat.S_IMODE(mode), 0, 0)
            for name in names:
                told = os.lstat(f"{directory}/{name}")
                if not directory.endswith("/.git") or name != "index":
                    found[f"{directory}/{name}"] = (told.st_mode, told.st_size, told.st_mtime_ns)
    return found


def _told(path: str, found: Analysis) -> bool:
    writing = [effect for effect in found.effects if effect.kind in (EffectKind.WRITE, EffectKind.DELETE)]
    return any(
        effect.touches(path) or (effect.reach is Reach.BELOW and effect.target.startswith(f"{path}/"))
        for effect in writing
    )


def main() -> None:
    """In the namespace: prints one JSON object."""
    oracle, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    base = Path(os.environ["BASE"])
    chance = random.Random(seed)
    checked: _Words | _Flags = _Words(base, chance) if oracle == "argv" else _Flags(base, chance)
    root, home = str(base / "work"), str(base if oracle == "argv" else base / "home")
    ends = time.monotonic() + seconds
    generated = ran = 0
    wrong: list[str] = []
    while time.monotonic() < ends:
        batch: dict[str, Analysis] = {}
        for _ in range(_BATCH):
            command = checked.generate()
            generated += 1
            if (found := _allowed(command, root, home)) is not None:
                batch[command] = found
        ran += len(batch)
        wrong += checked.check(batch)
    print(json.dumps({"generated": generated, "ran": ran, "wrong": list(dict.fromkeys(wrong))}))


if __name__ == "__main__":
    main()
