"""Prompts in sessions of coding agents: how often a person is asked.

The sessions of a Python and of a Node repository run for real, in the product's own sandbox, over the small
repositories below; what needs the network or a service is refused there when it asks. Commands of other repositories,
and those whose programs are not installed, are counted by what the analysis says of them.
"""

import asyncio
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from bench.attacks.outcome import Tally
from toolreeve import Toolreeve
from toolreeve.approval.request import Answer, Request
from toolreeve.config import Policy, Settings, State, Workspace
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind
from toolreeve.core.trial import Confinement
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.shell.analysis import analyse

MODES = {PermissionMode.DEFAULT: 20, PermissionMode.ACCEPT_EDITS: 6}
"""How many prompts per 100 commands of coding agents are promised at most."""
_CODING = ("liveswe-swebench", "own-python", "own-node")
_ROOTS = {"liveswe-swebench": "/testbed", "mini-swe-agent-tb": "/app"}
_SECONDS = 5
_ABSENT = (
    "command not found",
    "No module named",
    "timed out",
    "E_TIMEOUT",
    "EAI_AGAIN",
    "could not determine executable",
)
"""How a command fails whose program is not installed, or waits for the network to fetch it."""
_EDITS = re.compile(
    r"write_text|write_bytes|\.write\(|open\([^)]*['\"][wa]b?\+?['\"]|writeFile|\.unlink\(|os\.(?:remove|rename|makedirs)"
    r"|shutil\.|\.to_csv\(|\.save\(|savefig|json\.dump\("
)
"""Code in a command that changes files, as far as its text shows."""
_APP = "class Config:\n    debug = False\n\n\ndef foo(a):\n    # TODO: more\n    return a + 1\n"
_TEST = "from app.main import foo\n\n\ndef test_login():\n    assert foo(1) == 2\n"
_PYTHON = {
    "pyproject.toml": (
        '[project]\nname = "app"\nversion = "0.1.0"\n[tool.pytest.ini_options]\npythonpath = ["src"]\n'
        "[tool.ruff]\nline-length = 100\n"
    ),
    **dict.fromkeys(("src/app/main.py", "src/app/models.py", "src/app/config.py", "src/app/utils.py"), _APP),
    "src/app/__init__.py": "",
    **dict.fromkeys(("tests/test_api.py", "tests/test_slow.py", "tests/unit/test_models.py"), _TEST),
    "tests/runtests.py": "print('ok')\n",
    "manage.py": "import sys\nprint(sys.argv)\n",
    "Makefile": "test:\n\tpython3 -m unittest discover -s tests\nbuild:\n\techo built\n",
    "README.md": "# App\n",
    "requirements.txt": "requests\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n.venv/\ndist/\nbuild/\n.mypy_cache/\n.ruff_cache/\n",
    ".env.example": "DATABASE_URL=x\n",
    "Dockerfile": "FROM scratch\n",
    "docker-compose.yml": "services: {}\n",
    ".github/workflows/ci.yml": "on: push\n",
    "logs/app.log": "started\n",
    "data/sample.bin": "x\n",
    "data/input.json": '{"a": 1}\n',
}
_SCRIPTS = {"test": "node --test tests", "build": "node scripts/build.mjs", "lint": "node --check src/index.js"}
_NODE = {
    "package.json": json.dumps({"name": "web", "version": "1.0.0", "type": "module", "scripts": _SCRIPTS}),
    "src/index.js": "export const foo = (a) => a + 1;\n",
    "src/App.tsx": "export default () => <b/>;\n",
    "src/main.tsx": "import App from './App';\n",
    "src/a.ts": "export {};\n",
    "tests/foo.test.js": (
        "import { test } from 'node:test';\nimport { foo } from '../src/index.js';\ntest('adds', () => { foo(1); });\n"
    ),
    "scripts/build.mjs": (
        "import { mkdirSync, writeFileSync } from 'node:fs';\nmkdirSync('dist', { recursive: true });\n"
        "writeFileSync('dist/index.js', '1');\n"
    ),
    "tsconfig.json": "{}\n",
    "vite.config.ts": "export default {};\n",
    ".env.example": "API_URL=x\n",
    ".gitignore": "node_modules/\ndist/\ncoverage/\n",
    "frontend/package.json": json.dumps({"name": "frontend", "scripts": {"build": "echo built"}}),
    "web/package.json": json.dumps({"name": "web", "scripts": {"lint": "echo ok"}}),
    "Makefile": "build:\n\tnode scripts/build.mjs\n",
}
REPOSITORIES: Mapping[str, Mapping[str, str]] = {"own-python": _PYTHON, "own-node": _NODE}


async def run(corpora: Path | None) -> list[Tally]:
    if corpora is None or not (corpora / "agent_sessions.jsonl").exists():
        return []
    rows = [json.loads(line) for line in (corpora / "agent_sessions.jsonl").read_text().splitlines()]
    return [tally for mode in MODES async for tally in _measure(mode, rows)]


async def _measure(mode: PermissionMode, rows: list[dict[str, str]]) -> AsyncIterator[Tally]:
    asked: Counter[str] = Counter()
    total = Counter(row["source"] for row in rows)
    shown: list[str] = []
    for source in total:
        commands = [row["command"] for row in rows if row["source"] == source]
        told = await _really(mode, source, commands) if source in REPOSITORIES else {}
        for at, command in enumerate(commands):
            if told.get(at, asks(command, mode, _ROOTS.get(source, "/project"))):
                asked[source] += 1
                shown.append(command)
        yield _tally(f"{mode.value}: {source}", asked[source], total[source])
    coding = sum(asked[source] for source in _CODING) * 100 / max(1, sum(total[source] for source in _CODING))
    tally = _tally(f"{mode.value}: coding agents", sum(asked[s] for s in _CODING), sum(total[s] for s in _CODING))
    if coding > MODES[mode]:
        tally.refused_wrongly.append(f"{coding:.1f} prompts per 100 commands, at most {MODES[mode]} are promised")
    yield tally


def _tally(name: str, asked: int, total: int) -> Tally:
    share = f"{name} ({asked * 100 / total:.1f} prompts per 100 commands)"
    return Tally(name=share, payloads=total, attempts=total, refused=asked, harmless=total - asked)


def asks(command: str, mode: PermissionMode, root: str) -> bool:
    """Whether somebody is asked before or after the command, by what the analysis says."""
    found = analyse(command, cwd=root, home="/home/me", root=root)
    if found.confinable.within is not Confinement.TRY:
        return found.confinable.within is Confinement.WORK
    if mode is PermissionMode.ACCEPT_EDITS:
        return any(effect.kind is EffectKind.DELETE for effect in found.changes)
    changes = found.changes or any(danger > DangerLevel.LOW for danger, _ in found.alarms)
    return bool(changes) or _EDITS.search(command) is not None


async def _really(mode: PermissionMode, source: str, commands: list[str]) -> dict[int, bool]:
    """Which commands asked, of those whose programs are installed; what was tried is kept, everything else refused."""
    asked: dict[int, bool] = {}
    questions: list[Request] = []

    def answer(request: Request) -> Answer:
        questions.append(request)
        return request.allow() if request.verdict.runs is Confinement.TRY else request.deny()

    with tempfile.TemporaryDirectory() as base:
        root = _repository(Path(base) / "work", REPOSITORIES[source])
        settings = Settings(
            workspace=Workspace(dir=str(root)),
            state=State(dir=f"{base}/state"),
            policy=Policy(mode=mode.value),
        )
        async with Toolreeve(settings=settings, approve=answer) as reeve:
            for at, command in enumerate(commands):
                questions.clear()
                result = await reeve.call("bash", command=command, timeout=_SECONDS)
                said = f"{result.error} {result.data}"
                if questions or not any(sign in said for sign in _ABSENT):
                    asked[at] = bool(questions)
    return asked


def _repository(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    author = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*author, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
    return root


if __name__ == "__main__":
    import sys

    for each in asyncio.run(run(Path(sys.argv[1]))):
        print(each.name, *each.refused_wrongly)
