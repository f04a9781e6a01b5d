import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import PasswordDeleteError

from toolreeve.config.secret_stores import FileSecrets, KeyringSecrets, find_keyring
from toolreeve.config.secrets import SecretSource
from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.core.secrets.store import SecretStore

ODD_NAMES = ("", "a b", "a/b", "a.b", "1A", "${x}", "naïve", "A\n", "A\0", "x" * 129, "toolreeve names", "--json")


class Vault(KeyringBackend):
    """A keyring of the session, as a desktop would offer it."""

    priority = -1  # by itself, the library would choose the class for every other test of the process
    broken = False

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        if self.broken:
            raise RuntimeError("locked")
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.entries.pop((service, username), None) is None:
            raise PasswordDeleteError(username)


@pytest.fixture(autouse=True)
def headless() -> Iterator[None]:
    """A session without a keyring."""
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
    yield
    keyring.set_keyring(before)


@pytest.fixture
def vault(headless: None) -> Vault:
    made = Vault()
    made.priority = 5
    keyring.set_keyring(made)
    return made


@pytest.fixture(params=["file", "keyring"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SecretStore:
    if request.param == "file":
        return FileSecrets(tmp_path / "secrets.toml")
    return KeyringSecrets(Vault(), tmp_path / "keyring")


def test_a_store_keeps_lists_and_removes(store: SecretStore) -> None:
    store.set("B", 'two "lines"\nof\ttext \\ \x7f 🔑')
    store.set("A", "one")
    store.set("A", "changed")

    assert store.list() == ["A", "B"]
    assert (store.get("A"), store.get("B")) == ("changed", 'two "lines"\nof\ttext \\ \x7f 🔑')
    assert store.get("C") is None
    assert store.remove("A")
    assert not store.remove("A")
    assert store.list() == ["B"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_no_reference_could_hold_is_refused(store: SecretStore, name: str) -> None:
    with pytest.raises(ToolError, match="cannot name a secret"):
        store.set(name, "value")
    assert store.get(name) is None
    assert list(store.list()) == []


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 70_000, "\udc80"])
def test_a_value_that_no_program_could_get_is_refused(store: SecretStore, value: str) -> None:
    with pytest.raises(ToolError, match="a secret"):
        store.set("A", value)
    assert store.get("A") is None


@given(st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True), st.text(min_size=1), max_size=4))
def test_the_file_is_valid_toml_whatever_the_secrets(
    tmp_path_factory: pytest.TempPathFactory, kept: dict[str, str]
) -> None:
    kept = {name: value for name, value in kept.items() if "\0" not in value}
    path = tmp_path_factory.mktemp("s") / "secrets.toml"
    for name, value in kept.items():
        FileSecrets(path).set(name, value)

    assert (tomllib.loads(path.read_text()) if kept else {}) == kept
    assert FileSecrets(path).read() == kept


def test_the_file_is_private_and_keeps_its_comment(tmp_path: Path) -> None:
    path = tmp_path / "secrets.toml"
    path.write_text('# mine\n\nOLD = "x"\n')
    path.chmod(0o600)

    FileSecrets(path).set("NEW", "y")

    assert path.read_text() == '# mine\n\nOLD = "x"\nNEW = "y"\n'
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="accessible to other users"):
        FileSecrets(path).get("OLD")


def test_processes_that_set_secrets_at_once_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "secrets.toml"
    script = (
        "import sys\nfrom pathlib import Path\nfrom toolreeve.config.secret_stores import FileSecrets\n"
        "for number in range(10): FileSecrets(Path(sys.argv[1])).set(f'{sys.argv[2]}_{number}', 'x')\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in "ABCD"]
    assert [process.wait(60) for process in started] == [0] * 4

    assert len(FileSecrets(path).list()) == 40


def test_without_a_keyring_the_file_is_used_and_said_why(tmp_path: Path) -> None:
    source = SecretSource({}, tmp_path / "secrets.toml")

    assert find_keyring()[0] is None
    assert source.store.title == f"the file {tmp_path / 'secrets.toml'}"
    assert "because this session has no keyring" in source.announcement
    with pytest.raises(ConfigError, match="no keyring"):
        _ = SecretSource({}, tmp_path / "secrets.toml", "keyring").store


def test_the_keyring_is_preferred_where_there_is_one(tmp_path: Path, vault: Vault) -> None:
    source = SecretSource({"A": "environment", "C": "environment"}, tmp_path / "secrets.toml")

    source.store.set("A", "keyring")

    assert source.announcement.startswith("secrets are kept in the keyring of the operating system")
    assert vault.entries["toolreeve", "A"] == "keyring"
    assert (source.find("A"), source.find("C"), source.find("D")) == ("keyring", "environment", None)
    FileSecrets(tmp_path / "secrets.toml").set("A", "file")
    assert source.find("A") == "file"
    assert SecretSource({}, tmp_path / "secrets.toml", "file").store.title.startswith("the file")


def test_a_locked_keyring_is_an_error_and_not_an_absent_secret(tmp_path: Path, vault: Vault) -> None:
    vault.broken = True

    with pytest.raises(ToolError, match="does not answer: locked"):
        SecretSource({"A": "environment"}, tmp_path / "secrets.toml").find("A")


def test_a_keyring_that_waits_for_a_person_to_unlock_it_is_not_waited_for(tmp_path: Path, vault: Vault) -> None:
    forever = threading.Event()
    vault.get_password = lambda *_: forever.wait()  # type: ignore[method-assign, assignment]

    with pytest.raises(ToolError, match=r"did not answer within 0.05 s"):
        KeyringSecrets(vault, tmp_path / "keyring", patience=0.05).get("A")
    forever.set()


def test_a_newer_value_in_the_keyring_is_not_hidden_by_an_older_one_in_the_file(tmp_path: Path, vault: Vault) -> None:
    FileSecrets(tmp_path / "secrets.toml").set("GRANT", "old")
    source = SecretSource({}, tmp_path / "secrets.toml")

    source.keep("GRANT", "new")

    assert vault.entries["toolreeve", "GRANT"] == "new"
    assert source.find("GRANT") == "new"
    assert FileSecrets(tmp_path / "secrets.toml").get("GRANT") is None
