"""The fast start of a hook changes how long it takes, and nothing else."""

import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hook.conftest import Person
from toolreeve.hook.fast_start import CompiledCode

PREPARED = """
import sys
from toolreeve.hook import fast_start
class Kept(fast_start.CompiledCode):
    def __init__(self, path):
        super().__init__({path!r})
fast_start.CompiledCode = Kept
code = fast_start.prepare()
{body}
code.save()
"""


def run(path: Path, body: str) -> str:
    """Python prepared as a hook is, with what was compiled in `path`."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    script = PREPARED.format(path=str(path), body=body)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COMPARE = """
import importlib, re, pickle
from re import _compiler, _parser
shown = []
for name in ("toolreeve.policy.shell.parse.syntax", "toolreeve.core.secrets.patterns", "toolreeve.core.guarded_paths"):
    module = importlib.import_module(name)
    for key, value in sorted(vars(module).items()):
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            shown.append((key, value.pattern, value.flags, value.groups, sorted(value.groupindex.items())))
from toolreeve.core.call import Principal, Role
one = Principal(user="a", role=Role.VIEWER)
try:
    one.user = "b"
except Exception as problem:
    shown.append(type(problem).__name__)
other = Principal(user="a", role=Role.VIEWER)
shown += [repr(one), one == other, hash(one) == hash(other)]
print(shown)
"""


def test_what_was_compiled_before_is_what_would_be_compiled_now(tmp_path: Path) -> None:
    path = tmp_path / "hook.compiled"

    first, second = run(path, COMPARE), run(path, COMPARE)
    kept = path.stat().st_mtime_ns
    third = run(path, f"{COMPARE}\nprint(len(code) == code._known)")

    assert first == second
    assert third == f"{first}\nTrue", "nothing was compiled again"
    assert (path.stat().st_mtime_ns, path.stat().st_mode & 0o777) == (kept, 0o600)


def test_patterns_of_users_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "hook.compiled"

    run(path, "import re\ndef read(): return re.compile('private-[a-z]+')\nassert read().match('private-x')")

    assert b"private-" not in path.read_bytes() if path.exists() else True


@pytest.mark.parametrize("fault", ["mode", "link", "version", "garbage"])
def test_a_file_that_is_not_ours_alone_or_not_whole_is_not_used(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "hook.compiled"
    run(path, "import toolreeve.core.call")
    version, codes, regexes = marshal.loads(path.read_bytes())
    assert len(CompiledCode(str(path))) == len(codes) + len(regexes)

    match fault:
        case "mode":
            path.chmod(0o620)
        case "link":
            path.rename(tmp_path / "elsewhere")
            path.symlink_to("elsewhere")
        case "version":
            path.write_bytes(marshal.dumps((("another", version[1]), codes, regexes)))
        case "garbage":
            path.write_bytes(path.read_bytes()[:-9])

    assert len(CompiledCode(str(path))) == 0


def test_deciding_alone_loads_no_event_loop_and_still_records(person: Person) -> None:
    script = (
        "import sys\n"
        "sys.stdin = open(sys.argv[1])\n"
        "from toolreeve.hook.command import main\n"
        "status = main(['claude-code'])\n"
        "unused = ('asyncio', 'ssl', 'subprocess', 'jsonschema_rs', 'inspect')\n"
        "print(status, [n for n in unused if type(sys.modules.get(n)).__name__ == 'module'], file=sys.stderr)"
    )
    event = person.project.parent / "event.json"
    event.write_text(
        '{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": ".", "tool_name": "Bash",'
        ' "tool_input": {"command": "ls"}}'
    )

    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(event)],
        cwd=person.project,
        env=person.environ,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert '"allow"' in done.stdout, done.stderr
    assert done.stderr.strip() == "0 []"
