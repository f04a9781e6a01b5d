import json
import os
import signal
import socket
import struct
import time
from pathlib import Path

import pytest

from tests.hook.conftest import Person
from toolreeve.hook.private_socket import NotPrivate, connect, socket_path


def path_of(person: Person) -> Path:
    return Path(socket_path(str(person.project), person.environ))


def ask(person: Person, request: bytes) -> dict[str, str]:
    with connect(str(path_of(person)), 5) as server:
        server.sendall(request)
        server.shutdown(socket.SHUT_WR)
        answered = b"".join(iter(lambda: server.recv(65536), b""))
    found: dict[str, str] = json.loads(answered)
    return found


async def test_a_running_server_answers_and_records(person: Person) -> None:
    with person.server():
        path = path_of(person)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert person.hook("Bash", {"command": "ls"}).decision == "allow"
        assert person.hook("Bash", {"command": "rm x"}).decision == "ask"

    assert not path.exists()
    assert [record.body["origin"] for record in await person.records(kind="call", tool="bash")] == ["hook", "hook"]


def test_a_server_decides_by_the_files_as_they_are_now(person: Person) -> None:
    rules = person.home / ".config/toolreeve/policy.yaml"
    with person.server():
        assert person.hook("Bash", {"command": "ls"}).decision == "allow"
        rules.write_text("rules: [{program: ls, decision: deny, reason: not here}]\n")
        assert person.hook("Bash", {"command": "ls"}).decision == "deny"
        rules.write_text("rules: [{program: ls, decsion: deny}]\n")
        broken = person.hook("Bash", {"command": "ls"})
        assert broken.decision == "deny"
        assert "decsion" in broken.reason
        rules.unlink()
        assert person.hook("Bash", {"command": "ls"}).decision == "allow"


def test_a_server_started_with_flags_does_not_answer_for_others(person: Person) -> None:
    process = person.start("mcp", "--mode", "strict")
    request = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert process.stdin is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    assert process.stdout is not None
    process.stdout.readline()
    try:
        assert not path_of(person).exists()
        assert person.hook("Bash", {"command": "ls"}).decision == "allow"
    finally:
        process.communicate(timeout=30)


def test_garbage_is_denied_by_the_server_too(person: Person) -> None:
    with person.server():
        assert ask(person, b"")["decision"] == "deny"
        assert ask(person, b"nobody\n{}")["decision"] == "deny"
        assert ask(person, b"claude-code\n{")["decision"] == "deny"
        assert ask(person, b"claude-code\n" + b"[" * 100_000)["decision"] == "deny"
        assert person.hook("Bash", {"command": "ls"}).decision == "allow"


def test_a_stale_socket_is_not_waited_for_and_replaced(person: Person) -> None:
    path = path_of(person)
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    path.chmod(0o600)

    assert person.hook("Bash", {"command": "ls"}).decision == "allow"
    with person.server():
        assert ask(person, b"claude-code\n{")["decision"] == "deny"


@pytest.mark.parametrize("trap", ["link", "open", "open_folder", "file"])
def test_a_socket_that_is_not_private_is_not_asked(person: Person, tmp_path: Path, trap: str) -> None:
    """It would answer `allow` to everything."""
    path = path_of(person)
    path.parent.mkdir(mode=0o700)
    place = tmp_path / "evil.sock" if trap in ("link", "file") else path
    with socket.socket(socket.AF_UNIX) as evil:
        evil.bind(str(place))
        evil.listen()
        place.chmod(0o666 if trap == "open" else 0o600)
        if trap == "link":
            path.symlink_to(place)
        elif trap == "file":
            path.write_text("")
            path.chmod(0o600)
        elif trap == "open_folder":
            path.parent.chmod(0o777)

        with pytest.raises(NotPrivate):
            connect(str(path), 1)
        assert person.hook("Bash", {"command": "rm -rf x"}).decision == "ask"


@pytest.mark.parametrize("trap", ["link", "file"])
def test_a_server_takes_no_place_that_is_not_its_own(person: Person, tmp_path: Path, trap: str) -> None:
    path = path_of(person)
    path.parent.mkdir(mode=0o700)
    victim = tmp_path / "victim"
    victim.write_text("kept")
    if trap == "link":
        path.symlink_to(victim)
    else:
        path.write_text("")

    with person.server():
        assert person.hook("Bash", {"command": "ls"}).decision == "allow"

    assert victim.read_text() == "kept"
    assert path.is_symlink() == (trap == "link")


def test_another_user_is_not_answered(person: Person) -> None:
    """Only the superuser can be two users; as anybody else, the mode of the socket is all there is to try."""
    if os.geteuid() != 0:
        return
    with person.server():
        path = path_of(person)
        path.parent.chmod(0o711)
        for folder in path.parents[1:2]:
            folder.chmod(folder.stat().st_mode | 0o011)
        path.chmod(0o666)
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:  # pragma: no cover - another process
            os.setgid(65534)
            os.setuid(65534)
            try:
                with socket.socket(socket.AF_UNIX) as other:
                    other.connect(str(path))
                    other.sendall(b"claude-code\n{")
                    other.shutdown(socket.SHUT_WR)
                    os.write(writer, b"answered:" + other.recv(1000))
            except OSError as problem:
                os.write(writer, str(problem).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert not os.read(reader, 2000).startswith(b"answered:{")


def test_a_resident_server_stays_after_the_first_hook_and_ends_when_unused(person: Person) -> None:
    process = person.start("hook", "resident", str(person.project))
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, b"", b"")


def test_the_first_hook_of_a_while_starts_the_process_that_answers_the_next_ones(person: Person) -> None:
    (person.home / ".config/toolreeve/toolreeve.toml").write_text("[hooks]\nresident_minutes = 1\n")
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(person.project), "prompt": "hello"}
    first = person.send("claude-code", json.dumps(event).encode())
    resident = until_answers(person)
    call = event | {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    by_resident = ask(person, b"claude-code\n" + json.dumps(call).encode())
    second = person.hook("Bash", {"command": "rm x"})
    os.kill(resident, signal.SIGKILL)

    assert (first.status, first.out) == (0, ""), "a prompt comes before the first call: its hook is the slow one"
    assert (by_resident["decision"], second.decision) == ("allow", "ask")


def until_answers(person: Person) -> int:
    """The process that answers, as soon as there is one."""
    end = time.monotonic() + 60
    while True:
        try:
            with connect(str(path_of(person)), 5) as server:
                raw = server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                return struct.unpack("3i", raw)[0]  # type: ignore[no-any-return]
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
