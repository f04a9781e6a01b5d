"""Compares predicted effects of known commands with what strace observes.

    python -m bench.shell_truth CORPORA

Only commands that are SAFE, contact nothing and name nothing outside the scratch directory are run, each in a fresh
copy of a small tree, with a short time limit.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.policy.shell.analysis import Analysis, analyse

_CALL = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)")
_TORN = re.compile(r'^(\d+)\s+execve\("([^"]+)".*<unfinished')
"""A start that another process' lines came between; whether it succeeded is told later, and not looked for."""
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NAMED = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_QUIET = re.compile(r"/dev/(?:null|tty|stdout|stderr|pts/|fd/)|/proc/self/|\.git/(?:index|.*\.lock)")
_MAKING = frozenset(
    "creat mkdir mkdirat unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat rmdir "
    "truncate chmod fchmodat chown fchownat mknod mknodat".split()
)
_SECONDS = 3


class Observed(NamedTuple):
    """What a run really did: paths it changed, files of the tree that it read (but git: all are its own), programs
    it started, whether it used the network."""

    changed: frozenset[str]
    read: frozenset[str]
    started: frozenset[str]
    contacted: bool
    around: str


def scratch(root: Path) -> Path:
    """A small tree to look at, with a repository in it."""
    for name, text in {
        "file.txt": "one\ntwo\nthree\n",
        "a.txt": "b\na\n",
        "b.txt": "a\nc\n",
        "src/main.py": "import os\nprint(1)\n",
        "src/data.json": '{"a": [1, 2]}\n',
        "dir/x.log": "ERROR x\n",
        "README.md": "# hello\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    quiet = {"cwd": root, "check": True, "capture_output": True}
    subprocess.run(["git", "init", "-q"], **quiet)  # type: ignore[call-overload]
    subprocess.run(["git", "add", "-A"], **quiet)  # type: ignore[call-overload]
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "first"], **quiet)  # type: ignore[call-overload]
    return root


def observe(command: str, root: Path, *, seconds: float = _SECONDS) -> Observed | None:
    """Run it under strace; None when it does not end in time."""
    log = root.parent / f"{root.name}.strace"
    traced = ["strace", "-f", "-qq", "-s", "4096", "-y", "-e", "trace=file,process,network", "-o", str(log)]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(root.parent / "home"), "LC_ALL": "C.UTF-8"}
    run = subprocess.Popen(
        [*traced, "bash", "-c", command],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        subprocess.run(["kill", "-KILL", "--", f"-{run.pid}"], check=False)
        run.wait()
        return None
    return _read(log.read_text(errors="replace"), root)


def _read(text: str, root: Path) -> Observed:
    places: dict[str, Path] = {}
    programs: dict[str, str] = {}
    changed: set[str] = set()
    looked_at: set[str] = set()
    started: set[str] = set()
    contacted = False
    for line in text.splitlines():
        if torn := _TORN.match(line):
            programs[torn[1]] = torn[2].rpartition("/")[2]
        found = _CALL.match(line)
        if found is None or found.group(3).startswith("-"):
            continue
        name, arguments = found.group(1), found.group(2)
        paths = _PATH.findall(arguments)
        process = line.partition(" ")[0]
        here = places.setdefault(process, root)
        if name in ("clone", "clone3", "fork", "vfork"):
            places.setdefault(found.group(3), here)
        elif name == "chdir" and paths:
            places[process] = here / paths[0]
        elif name == "execve" and paths:
            programs[process] = paths[0].rpartition("/")[2]
            started.add(programs[process])
        elif name == "connect" and "AF_INET" in arguments:
            contacted = True
        elif name in _MAKING or (
            name in ("open", "openat") and re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", arguments)
        ):
            changed.update(_resolved(name, arguments, here))
        elif name in ("open", "openat") and "O_DIRECTORY" not in arguments and programs.get(process) != "git":
            looked_at.update(_resolved(name, arguments, here))
    around = {path for path in looked_at if _is_content(path, root.parent)}
    return Observed(frozenset(changed), frozenset(around), frozenset(started), contacted, str(root.parent))


def _is_content(path: str, around: Path) -> bool:
    """Whether it is a file of the tree or beside it, and not the repository's own."""
    return Path(path).is_relative_to(around) and not Path(path).is_dir() and "/.git/" not in path


def _resolved(name: str, arguments: str, here: Path) -> Iterator[str]:
    """The paths that a call changed; of a link only the new name, a relative one by its directory."""
    named = [(base, path) for base, path in _NAMED.findall(arguments) if not _QUIET.search(f"{base}/{path}")]
    for base, path in named[-1:] if "link" in name and "unlink" not in name else named:
        yield os.path.normpath(here / base / path)


def unpredicted(analysis: Analysis, seen: Observed) -> list[str]:
    """What happened that no effect says."""
    writing = [effect for effect in analysis.effects if effect.kind in (EffectKind.WRITE, EffectKind.DELETE)]
    own = [effect for effect in writing if effect in analysis.kept and effect.touches(seen.around)]
    writing = [effect for effect in writing if effect not in own]
    changed = {path for path in seen.changed if path.startswith(seen.around) or not any(map(_covers, own, [path]))}
    running = {
        word.rpartition("/")[2]
        for effect in analysis.effects
        if effect.kind is EffectKind.EXEC
        for word in effect.target.split()
    }
    reading = [effect for effect in analysis.effects if effect.kind is EffectKind.READ]
    surprises = [f"changed {path}" for path in changed if not any(_covers(effect, path) for effect in writing)]
    handled = (*reading, *writing)
    surprises += [f"read {path}" for path in seen.read if not any(effect.touches(path) for effect in handled)]
    surprises += [f"started {name}" for name in seen.started - running - {"bash", "sh"}]
    if seen.contacted and not any(effect.kind in (EffectKind.NET, EffectKind.SEND) for effect in analysis.effects):
        surprises.append("used the network")
    return surprises


def _covers(effect: Effect, path: str) -> bool:
    """A temporary file beside a predicted one, gone again when the command ended, belongs to writing it."""
    target = effect.target.removesuffix("/**")
    passing = not os.path.lexists(path) and Path(path).parent == Path(target).parent
    return effect.touches(path) or path == target or path.startswith(f"{target}/") or passing


def harmless(analysis: Analysis, root: str) -> bool:
    """Cheap and without consequence: only reads, only here."""
    if not analysis.known or analysis.danger > DangerLevel.SAFE:
        return False
    paths = [effect for effect in analysis.effects if effect.kind is not EffectKind.EXEC]
    return all(effect.kind is EffectKind.READ and effect.target.startswith(root) for effect in paths) and all(
        shutil.which(part.argv[0].split()[0]) is not None or part.argv[0].split()[0] in ("cd", "[", "[[")
        for part in analysis.parts
        if part.argv
    )


def _commands(corpora: Path) -> Iterator[str]:
    for name in ("benign_nl2bash", "shell_dippy", "agent_shell_intercode"):
        with (corpora / f"{name}.jsonl").open() as lines:
            for line in lines:
                yield json.loads(line)["cmd"]


def main() -> int:
    corpora = Path(sys.argv[1])
    ran = 0
    surprises = 0
    unfinished = 0
    with tempfile.TemporaryDirectory() as base:
        (Path(base) / "home").mkdir()
        root = scratch(Path(base) / "work")
        for command in dict.fromkeys(_commands(corpora)):
            analysis = analyse(command, cwd=str(root), home=f"{base}/home", root=str(root))
            if not harmless(analysis, str(root)):
                continue
            seen = observe(command, root)
            ran += 1
            if seen is None:
                unfinished += 1
            elif found := unpredicted(analysis, seen):
                surprises += 1
                print(f"{command!r}: {', '.join(found)}")
    print(f"{ran} commands run, {unfinished} did not end in time, {surprises} did something unpredicted")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
