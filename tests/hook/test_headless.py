"""A client without a person is told apart by its own process, here one that is called gemini."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolreeve.hook.headless import is_headless

SCRIPT = "import subprocess; subprocess.run([{!r}, '-c', {!r}], stdin=subprocess.DEVNULL)"
ASK = "from toolreeve.hook.headless import is_headless; print(is_headless('gemini'), flush=True)"


def answer(tmp_path: Path, *args: str, terminal: bool) -> str:
    """What a hook finds that a shell of the client starts."""
    program = tmp_path / "gemini"
    interpreter = tmp_path / "python"  # without the spaces that a shebang cannot have
    interpreter.symlink_to(Path(sys.executable).resolve())
    program.write_text(f"#!{interpreter}\n" + SCRIPT.format(sys.executable, ASK))
    program.chmod(0o755)
    command = [str(program), *args]
    if terminal:
        command = [sys.executable, "-c", f"import pty; pty.spawn({command!r})"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("args", "terminal", "found"),
    [
        (["-p", "x"], False, "True"),
        (["--prompt=x"], True, "True"),
        ([], False, "True"),
        ([], True, "False"),
        (["-i", "x"], True, "False"),
        (["--acp"], False, "False"),
    ],
)
def test_gemini_asks_only_with_its_screen_or_an_editor(
    tmp_path: Path, args: list[str], *, terminal: bool, found: str
) -> None:
    assert answer(tmp_path, *args, terminal=terminal) == found


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
def test_without_such_a_process_a_person_is_assumed(client: str) -> None:
    assert not is_headless(client, 1)
