"""Toolchains of the user: what commands can run, and what stays hidden from them."""

import os
from pathlib import Path

import pytest

from toolreeve import Toolreeve
from toolreeve.config import load
from toolreeve.config.toolchains import find_toolchains

PROGRAM = "#!/bin/sh\necho ran $(basename $0)\n"


class Home:
    """A home directory with toolchains and credentials."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = place / "home"
        self.workspace = place / "work"
        self.workspace.mkdir()
        self.path: list[str] = []
        monkeypatch.setenv("HOME", str(self.place))
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            monkeypatch.delenv(name, raising=False)
        self._monkeypatch = monkeypatch

    def write(self, name: str, text: str = "secret=hunter2\n") -> None:
        file = self.place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def program(self, name: str, *, on_path: bool = True) -> None:
        self.write(name, PROGRAM)
        (self.place / name).chmod(0o755)
        if on_path:
            self.path.append(str((self.place / name).parent))
            self._monkeypatch.setenv("PATH", ":".join((*self.path, "/usr/bin", "/bin")))

    def configure(self, text: str) -> None:
        self.write(".config/toolreeve/toolreeve.toml", text)

    def reeve(self) -> Toolreeve:
        return Toolreeve(workspace=self.workspace, mode="bypass")

    async def bash(self, command: str) -> str:
        async with self.reeve() as reeve:
            result = await reeve.call("bash", command=command)
        return str(result.data.get("stdout", "")) + str(result.data.get("stderr", ""))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "program",
    [
        ".cargo/bin/cargo9",
        ".pyenv/shims/python9",
        ".nvm/versions/node/v99/bin/node9",
        ".local/bin/ruff9",
        "miniconda3/bin/conda9",
        "go/bin/gopls9",
        "bin/mine9",
    ],
)
async def test_a_program_on_the_users_path_runs(home: Home, program: str) -> None:
    home.program(program)

    assert await home.bash(Path(program).name) == f"ran {Path(program).name}\n"


async def test_the_users_order_decides_and_the_installation_is_visible_but_not_writable(home: Home) -> None:
    home.program("tools/v2/bin/sort")
    home.write("tools/v2/lib/data.txt", "from the library\n")

    printed = await home.bash(
        f"sort; cat {home.place}/tools/v2/lib/data.txt; echo x >> {home.place}/tools/v2/lib/data.txt; "
        f"rm {home.place}/tools/v2/bin/sort"
    )

    assert printed.startswith("ran sort\nfrom the library\n")
    assert (home.place / "tools/v2/lib/data.txt").read_text() == "from the library\n"
    assert (home.place / "tools/v2/bin/sort").exists()


async def test_a_link_to_a_program_elsewhere_brings_its_installation(home: Home) -> None:
    home.program(".local/bin/other")
    home.program("apps/black/bin/black9", on_path=False)
    (home.place / ".local/bin/black9").symlink_to(home.place / "apps/black/bin/black9")

    assert await home.bash("black9") == "ran black9\n"


SECRETS = [
    ".cargo/credentials.toml",
    ".npmrc",
    ".config/pip/pip.conf",
    ".local/share/uv/credentials/credentials.toml",
    ".ssh/id_rsa",
    ".bashrc",
    "miniconda3/.env",
    "miniconda3/etc/deep/er/.env.local",
    ".pyenv/.netrc",
    "tools/conf/server.key",
    "documents/letter.txt",
]


async def test_credentials_and_nested_secrets_stay_hidden(home: Home) -> None:
    for program in (".cargo/bin/a", ".local/bin/b", "miniconda3/bin/c", ".pyenv/shims/d", "tools/bin/e"):
        home.program(program)
    for secret in SECRETS:
        home.write(secret)

    printed = await home.bash(f"cd {home.place}; cat {' '.join(SECRETS)}; grep -r hunter2 . && echo found")

    assert "hunter2" not in printed
    assert "found" not in printed.splitlines()


@pytest.mark.parametrize("program", [".ssh/bin/x", ".aws/x"])
async def test_a_directory_of_secrets_is_no_toolchain(home: Home, program: str) -> None:
    home.program(program)

    assert "not found" in await home.bash("x")


async def test_what_commands_can_write_is_not_on_their_path(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = home.workspace / "bin" / "planted"
    planted.parent.mkdir()
    planted.write_text(PROGRAM)
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:/usr/bin:/bin")

    assert "not found" in await home.bash("planted")


async def test_the_settings_of_commands_add_programs_variables_and_files(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED", "along")
    monkeypatch.setenv("NOT_PASSED", "along")
    home.program("own/tool9", on_path=False)
    home.write("data/numbers.txt", "1 2 3\n")
    home.write("data/.env")
    home.configure(
        """
[commands]
path = ["~/own"]
readable = ["~/data"]
env_pass = ["PASSED"]
home = "~/agent-home"
[commands.env]
COLOUR = "blue"
"""
    )

    printed = await home.bash(
        f"tool9; cat {home.place}/data/numbers.txt; cat {home.place}/data/.env; "
        'echo $COLOUR $PASSED $NOT_PASSED; echo kept > ~/note; echo "$HOME"'
    )

    assert "ran tool9\n1 2 3\n" in printed
    assert "blue along\n" in printed
    assert "hunter2" not in printed
    assert (home.place / "agent-home" / "note").read_text() == "kept\n"
    assert f"{home.place}/agent-home" in printed


async def test_toolchains_can_be_turned_off(home: Home) -> None:
    home.program(".cargo/bin/cargo9")
    home.configure("[commands]\ntoolchains = false\n")

    assert "not found" in await home.bash("cargo9")


def test_the_description_says_what_a_command_has(home: Home) -> None:
    home.program(".cargo/bin/cargo9")
    bash = home.reeve().tools.resolve("bash")

    for words in ("No network", "start empty", "2048 MB", "hidden", "cargo"):
        assert words in bash.spec.description
    assert len(bash.spec.description) < 400


def test_the_variables_of_toolchains_are_set(home: Home) -> None:
    home.program(".cargo/bin/cargo9")
    (home.place / ".rustup").mkdir()

    environment = find_toolchains(load({"workspace.dir": str(home.workspace)})).environment

    assert environment == {"CARGO_HOME": f"{home.place}/.cargo", "RUSTUP_HOME": f"{home.place}/.rustup"}


def test_nothing_is_searched_before_a_command_runs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.program(".cargo/bin/cargo9")
    monkeypatch.setattr(os, "scandir", None)

    assert find_toolchains(load({"workspace.dir": str(home.workspace)})).names == ("cargo",)
