"""A workspace that is a home: what file tools refuse, commands neither see nor change."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.tools.approving_runtime import ApprovingRuntime, approving_runtime
from tests.world import World

SECRETS = (".config/toolreeve/secrets.toml", ".config/gh/hosts.yml", "project/deep/.env", ".ssh/id_rsa",
           ".config/chromium/Cookies", ".mozilla/x/logins.json")  # fmt: skip
OBEYED = (".bashrc", ".profile", ".config/autostart/x.desktop", ".config/systemd/user/x.service", ".gitconfig",
          ".local/bin/ls", ".config/fish/config.fish")  # fmt: skip


@pytest.fixture
async def runtime(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApprovingRuntime]:
    monkeypatch.setenv("HOME", str(world.workspace))
    async with approving_runtime(world) as made:
        for name in SECRETS:
            made.write(name, "a secret")
        for name in OBEYED[:4]:
            made.write(name, "mine")
        yield made


@pytest.mark.parametrize("name", SECRETS)
async def test_a_secret_is_neither_read_nor_seen(runtime: ApprovingRuntime, name: str) -> None:
    assert (await runtime.failure("read_file", path=name))[0].name == "PATH_FORBIDDEN"
    result = await runtime.call(
        "bash", command=f"cat {name}; cp -r {Path(name).parts[0]} copy; grep -r secret copy {name}; true"
    )

    assert "a secret" not in result.to_text()


@pytest.mark.parametrize("name", OBEYED)
async def test_a_start_up_file_is_changed_by_neither(runtime: ApprovingRuntime, name: str) -> None:
    before = (runtime.root / name).read_text() if (runtime.root / name).exists() else None
    assert (await runtime.failure("write_file", path=name, content="evil"))[0].name == "PATH_FORBIDDEN"
    await runtime.call(
        "bash", command=f"mkdir -p $(dirname {name}); echo evil > {name}; mv {name} x; echo evil > {name}"
    )

    assert ((runtime.root / name).read_text() if (runtime.root / name).exists() else None) == before


async def test_the_runtimes_own_environment_is_changed_by_neither(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = world.workspace / ".venv/lib"
    packages.mkdir(parents=True)
    monkeypatch.setattr("sys.prefix", str(world.workspace / ".venv"))
    async with approving_runtime(world) as runtime:
        assert (await runtime.failure("write_file", path=".venv/lib/x.pth", content="import os"))[
            0
        ].name == "PATH_FORBIDDEN"
        await runtime.call("bash", command="echo import os > .venv/lib/x.pth; mv .venv elsewhere")

    assert list(packages.iterdir()) == []
