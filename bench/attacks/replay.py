"""Replay of harmful commands in the product's own sandbox: none may take effect.

Nobody can be asked, so only what is allowed unasked runs: to look, or on trial. After each command the workspace and
the home directory must be as they were. Each list runs in default and in plan mode.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.attacks.exploits import CODE_OF_THE_WORKSPACE, RUN_OR_WRITE, SENT
from bench.attacks.oracles import snapshot
from bench.attacks.outcome import Tally
from bench.attacks.shell import filled, is_harmful
from toolreeve import Toolreeve
from toolreeve.config import Policy, Settings, State, Workspace

MODES = ("default", "plan")
_SECONDS = 3
_PLANTED = "import pathlib; pathlib.Path('PWN').write_text('x')\n"
_TREE = {
    "README.md": "# x\n",
    "src/main.py": "print(1)\n",
    "f": "text\n",
    "FILE": "text\n",
    "marker": "still here\n",
    "sub/x": "x\n",
    "conftest.py": _PLANTED,
    ".pnpmfile.cjs": "require('fs').writeFileSync('PWN', 'x')\n",
    ".yarnrc": 'yarn-path "./planted.js"\n',
    "planted.js": "require('fs').writeFileSync('PWN', 'x')\n",
    "package.json": json.dumps({"name": "x", "version": "1.0.0", "scripts": {"prepack": "touch PWN", "test": "ls"}}),
}


async def run(corpora: Path | None) -> list[Tally]:
    lists = {"exploits of the analysis": [*RUN_OR_WRITE, *CODE_OF_THE_WORKSPACE, *SENT], **_lists(corpora)}
    return [await _replay(f"{name}, {mode}", commands, mode) for name, commands in lists.items() for mode in MODES]


def _lists(corpora: Path | None) -> dict[str, list[str]]:
    if corpora is None or not (corpora / "gtfobins.jsonl").exists():
        return {}
    return {
        "agent_bypass": [
            row["command"] for row in _rows(corpora, "agent_bypass") if row["category"].startswith("shell/")
        ],
        "gtfobins": [row["code"] for row in _rows(corpora, "gtfobins") if is_harmful(row["function"])],
        "shell_dcg": [row["cmd"] for row in _rows(corpora, "shell_dcg") if row["expected"] == "deny"],
        "shell_dippy: prompt": [row["cmd"] for row in _rows(corpora, "shell_dippy") if not row["auto_approve"]],
    }


def _rows(corpora: Path, name: str) -> Iterator[dict[str, str]]:
    return (json.loads(line) for line in (corpora / f"{name}.jsonl").read_text().splitlines())


async def _replay(name: str, commands: list[str], mode: str) -> Tally:
    tally = Tally(name=name, payloads=len(commands), attempts=len(commands))
    with tempfile.TemporaryDirectory() as base:
        root, home = Path(base) / "work", Path(base) / "home"
        home.mkdir()
        build(root)
        settings = Settings(
            workspace=Workspace(dir=str(root)),
            state=State(dir=f"{base}/state"),
            policy=Policy(mode=mode),  # type: ignore[arg-type]
        )
        async with Toolreeve(settings=settings) as reeve:
            before = snapshot(root, home)
            for command in commands:
                result = await reeve.call("bash", command=filled(command, str(root)), timeout=_SECONDS)
                after = snapshot(root, home)
                if changed := sorted(path for path in {*before, *after} if before.get(path) != after.get(path)):
                    tally.escaped.append(f"{command!r} changed {changed}")
                before = after
                refused = result.error is not None and result.error.code.value in ("E_PERMISSION", "E_DENIED")
                tally.refused += refused
                tally.harmless += not refused
    return tally


def build(root: Path) -> None:
    for name, text in _TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    author = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
    subprocess.run(["sqlite3", "x.db", "create view v as select edit('x', 'touch PWN;:')"], cwd=root, check=False)
