import asyncio
import base64
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ConfigError
from toolreeve.serve.mcp.request_state import KEY_FILE, BadState, RequestState, Seal, check_keys, load_keys

KEY, OTHER = b"k" * 32, b"o" * 32
STATE = RequestState(holder="ann", request="r", binding="b", approved_by="Bea", inner="theirs", question="q", asked=5.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def seal(*keys: bytes, clock: Clock | None = None) -> Seal:
    return Seal(keys or (KEY,), now=clock or Clock())


def test_what_is_sealed_comes_back_whole() -> None:
    opened = seal().open(seal().close(STATE), holder="ann", request="r")

    assert replace(opened, expires=0.0) == STATE
    assert opened.expires == 1600.0


def test_the_client_cannot_read_the_state() -> None:
    token = seal().close(STATE)

    raw = base64.urlsafe_b64decode(token + "==")
    assert not any(word in raw for word in (b"ann", b"Bea", b"theirs"))
    assert seal().close(STATE) != token, "and two of the same cannot be told to be the same"


@pytest.mark.parametrize(("holder", "request_digest"), [("eve", "r"), ("ann", "other"), ("", "r"), ("ann", "")])
def test_another_holder_or_another_request_is_refused(holder: str, request_digest: str) -> None:
    with pytest.raises(BadState):
        seal().open(seal().close(STATE), holder=holder, request=request_digest)


def test_what_is_too_old_is_refused() -> None:
    clock = Clock()
    made = seal(clock=clock)
    token = made.close(STATE)
    clock.now += 600.0

    with pytest.raises(BadState, match="expired"):
        made.open(token, holder="ann", request="r")


def test_another_key_is_refused_and_an_older_one_still_opens() -> None:
    token = seal(KEY).close(STATE)

    with pytest.raises(BadState):
        seal(OTHER).open(token, holder="ann", request="r")
    assert seal(OTHER, KEY).open(token, holder="ann", request="r").binding == "b"


@given(st.data())
def test_no_changed_token_is_opened(data: st.DataObject) -> None:
    token = seal().close(STATE)
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    changed = base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")

    with pytest.raises(BadState):
        seal().open(changed, holder="ann", request="r")


@given(
    st.one_of(st.text(), st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()), st.integers(), st.none())
)
def test_nothing_that_is_made_up_is_opened(token: object) -> None:
    with pytest.raises(BadState):
        seal().open(token, holder="ann", request="r")


@pytest.mark.parametrize("spelled", ["{}=", "{}==", " {}", "{}\n", "{}A"])
def test_only_one_spelling_of_a_token_is_the_token(spelled: str) -> None:
    with pytest.raises(BadState):
        seal().open(spelled.format(seal().close(STATE)), holder="ann", request="r")


def test_a_key_that_could_be_guessed_is_refused_by_its_place() -> None:
    with pytest.raises(ConfigError, match="key 2 has 6 characters"):
        check_keys(["x" * 32, "secret"], source="mcp.state_key")


def test_a_key_is_made_for_its_owner_alone_and_kept(tmp_path: Path) -> None:
    first = load_keys(tmp_path / "state")

    assert load_keys(tmp_path / "state") == first
    assert len(first[0]) == 64
    assert (tmp_path / "state" / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "state").iterdir()] == [KEY_FILE]


def test_a_key_that_others_can_read_or_that_is_empty_is_refused(tmp_path: Path) -> None:
    file = tmp_path / KEY_FILE
    file.write_text("x" * 64)
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="other users can read"):
        load_keys(tmp_path)
    file.chmod(0o600)
    file.write_text("\n")
    with pytest.raises(ConfigError, match="no key"):
        load_keys(tmp_path)


async def test_processes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    imports = "import sys, pathlib; from toolreeve.serve.mcp.request_state import load_keys"
    program = f"{imports}; print(load_keys(pathlib.Path(sys.argv[1])))"
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(tmp_path), stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    printed = [(await process.communicate())[0] for process in started]

    assert len(set(printed)) == 1
    assert printed[0].startswith(b"[b'")
