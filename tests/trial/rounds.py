"""Seeded rounds: a random tree, a random script, a trial of it, and a plain run of it on a copy.

Committed, both trees are equal; undone, the tree is as before; killed at a random system call, the commit is finished
or reverted by recovery. Run in a process of its own, as root or as an ordinary user (`--user`), because it forks.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

from tests.sandbox.runner import drop_root
from tests.trial.overlay import fork_trial
from toolreeve.core.errors import ToolError
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.kernel import syscalls
from toolreeve.trial.commits import Commits
from toolreeve.trial.harvest import Harvest
from toolreeve.trial.journal import CommitPhase
from toolreeve.trial.layer_reader import read_layer

Listing = dict[str, tuple[int, str, int]]


def listing(top: Path) -> Listing:
    """Type, permissions, content and owner of everything."""
    found: Listing = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = Path(folder) / name
            looked = path.lstat()
            content = ""
            if stat.S_ISLNK(looked.st_mode):
                content = str(path.readlink())
            elif stat.S_ISREG(looked.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(top))] = (looked.st_mode, content, looked.st_uid)
    return found


def make_tree(top: Path, rng: random.Random) -> None:
    top.mkdir()
    if rng.random() < 0.3:
        top.chmod(0o2755)
    folders = [top]
    for number in range(12):
        folder = rng.choice(folders) / f"d{number}"
        folder.mkdir()
        folders.append(folder)
    for number in range(40):
        (rng.choice(folders) / f"f{number}").write_text(f"{number}\n" * rng.randint(0, 300))
    for number in range(6):
        (rng.choice(folders) / f"s{number}").symlink_to(f"f{number}")


OPERATIONS = (
    "echo more{i} >> {a}",
    "rm -rf {a}",
    "rm -rf {a}; mkdir -p {a}; echo n{i} > {a}/new{i}",
    "chmod 700 {a}",
    "chmod 500 {a}",
    "mkdir -p x{i}/y; echo {i} > x{i}/y/z; ln -s z x{i}/y/l",
    "mv {a} moved{i}",
    "mv -T {a} {b}",
    "cp -r {a} copy{i}",
    "rm -rf {a}; ln -s {b} {a}",
    "rm -rf {a}; echo file > {a}",
    "touch {a}",
    "ln {a} hard{i}",
    "ln -f {a} {b}",
    "sed -i s/1/2/ {a}",
    "truncate -s 100000 {a}",
    "mkdir -p {a}/sub/sub2 && echo q > {a}/sub/sub2/q",
    "printf x > $'new\\nline{i}'; printf y > $'\\xff{i}'",
    "mv {a} {b}/",
    "rm -rf {b} && mv {a} {b}",
    "echo t > {a}.tmp && mv {a}.tmp {a}",
    "mkdir empty{i}; rmdir empty{i}; mkdir e{i}",
)


def make_script(top: Path, rng: random.Random) -> str:
    names = sorted(str(path.relative_to(top)) for path in top.rglob("*"))
    lines = [
        rng.choice(OPERATIONS).format(a=rng.choice(names), b=rng.choice(names), i=number)
        for number in range(rng.randint(1, 14))
    ]
    return "exec 2>/dev/null\n" + "\n".join(lines) + "\n"


class Round:
    def __init__(self, base: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.workspace = base / f"w{seed}"
        self.plain = base / f"p{seed}"
        self.commits = Commits(base / "state")
        make_tree(self.workspace, self.rng)
        subprocess.run(["cp", "-a", self.workspace, self.plain], check=True)
        self.before = listing(self.workspace)
        self.script = make_script(self.workspace, self.rng)
        subprocess.run(["bash"], input=self.script.encode(errors="surrogateescape"), cwd=self.plain, check=False)
        self.wanted = listing(self.plain)

    def harvest(self) -> Harvest:
        layer = fork_trial(self.workspace, self.script)
        harvest = read_layer(layer, GuardTable(roots=(str(self.workspace),)))
        assert harvest.problem == "", (harvest.problem, self.script)
        return harvest

    def close(self, harvest: Harvest) -> None:
        os.close(harvest.layer.upper)
        for path in (self.workspace, self.plain, self.commits.journal.directory):
            subprocess.run(["chmod", "-R", "u+rwx", path], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(path, ignore_errors=True)

    def commit_and_undo(self) -> str:
        harvest = self.harvest()
        prepared = self.commits.prepare(harvest)
        prepared.apply()
        self.require(self.wanted, "committed")
        self.commits.toggle(prepared.plan.id, undo=True)
        self.require(self.before, "undone")
        self.commits.toggle(prepared.plan.id, undo=False)
        self.require(self.wanted, "done again")
        self.close(harvest)
        return "committed"

    def kill(self, *, edit: bool) -> str:
        """Kill it at a random call of a C function, while it stages or while it swaps; then somebody may edit a file
        that was not swapped yet."""
        harvest = self.harvest()
        call = self.rng.randint(1, 20 + 18 * len(harvest.changes))
        if self.rng.random() < 0.4:
            kill_at(lambda: lambda: self.commits.prepare(harvest).apply(), call + 60)
        else:
            kill_at(lambda: self.commits.prepare(harvest).apply, call)
        edited = self.edit(harvest) if edit else None
        outcomes = {each.outcome: each.reason for each in self.commits.recover()}
        outcome = next(iter(outcomes), "nothing to recover")
        if outcome == "nothing to recover":
            done = CommitPhase.DONE in self.commits.journal.phases().values()
            self.require(self.wanted if done else self.before, f"{outcome}, {done}", without=edited)
        else:
            wanted = {"dropped": self.before, "reverted": self.before, "finished": self.wanted}[outcome]
            self.require(wanted, f"{outcome} {outcomes}", without=edited)
        if edited is not None:
            assert (self.workspace / edited).read_text().endswith("EDITED\n"), (edited, outcomes)
        self.close(harvest)
        return outcome

    def kill_undo(self) -> str:
        """Kill the undo of a commit; recovery finishes it."""
        harvest = self.harvest()
        prepared = self.commits.prepare(harvest)
        prepared.apply()
        undo = partial(self.commits.toggle, prepared.plan.id, undo=True)
        count = len(harvest.changes)
        kill_at(lambda: undo, self.rng.randint(40 + 12 * count, 80 + 36 * count))
        recovered = [each.outcome for each in self.commits.recover()]
        is_undone = self.commits.journal.phase(prepared.plan.id) is CommitPhase.UNDONE
        self.require(self.before if is_undone else self.wanted, f"undo killed, {recovered}")
        self.close(harvest)
        return "undone" if recovered else "undo not begun or over"

    def edit(self, harvest: Harvest) -> str | None:
        """As somebody else would, between the crash and the next start."""
        for id_, phase in self.commits.journal.phases().items():
            plan = self.commits.journal.read(id_) if phase is CommitPhase.APPLYING else None
            for swap in plan.swaps if plan is not None else ():
                path = self.workspace / swap.path
                is_file = path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1
                if swap.after is None and swap.old is not None and is_file and path.stat().st_ino == swap.old.inode:
                    path.chmod(0o600)
                    path.write_text("EDITED\n")
                    return swap.path
        return None

    def require(self, wanted: Listing, when: str, without: str | None = None) -> None:
        found = listing(self.workspace)
        different = {
            path: (found.get(path), wanted.get(path))
            for path in found.keys() | wanted.keys()
            if found.get(path) != wanted.get(path) and path != without
        }
        assert not different, (when, different, self.script)


def kill_at(prepare: Callable[[], Callable[[], None]], call: int) -> None:
    """In a fork: what is prepared runs, and is killed at its `call`th call of a C function."""
    pid = os.fork()
    if pid == 0:
        count = 0

        def trace(_: FrameType, event: str, __: object) -> None:
            nonlocal count
            if event == "c_call":
                count += 1
                if count == call:
                    os.kill(os.getpid(), signal.SIGKILL)

        work = prepare()
        sys.setprofile(trace)
        work()
        os._exit(0)
    os.waitpid(pid, 0)


def main(arguments: list[str]) -> None:
    if "--user" in arguments:
        drop_root()
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # else its own /proc belongs to root
    first, last = int(arguments[0]), int(arguments[1])
    base = Path(tempfile.mkdtemp(prefix="rounds-"))
    base.chmod(0o755)
    outcomes: Counter[str] = Counter()
    try:
        for seed in range(first, last):
            this = Round(base, seed)
            if "--kill" in arguments and seed % 5 == 4:
                outcomes[this.kill_undo()] += 1
            elif "--kill" in arguments:
                outcomes[this.kill(edit=seed % 3 == 0)] += 1
            else:
                outcomes[this.commit_and_undo()] += 1
    finally:
        shutil.rmtree(base)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ToolError as problem:
        sys.exit(f"{problem.code}: {problem.message}")
