"""A runtime whose connectors are configured for local servers."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.network import WebServer
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.config import Connectors, Network, Settings

URLS = ("gmail", "calendar", "google_login", "google_oauth", "anthropic", "github", "linkedin")


def connected_settings(world: World, web: WebServer, *enabled: str, timeout: float = 30.0) -> Settings:
    urls: dict[str, Any] = {f"{name}_url": f"http://127.0.0.1:{web.port}" for name in URLS}
    network = Network(allow=(f"127.0.0.1:{web.port}",), timeout=timeout)
    return world.settings(connectors=Connectors(enabled=enabled, **urls), network=network)


class Connected:
    """`secrets` are written into the user's private file."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.config = world.workspace.parent / "config"
        monkeypatch.setenv("XDG_CONFIG_HOME", str(self.config))
        for name in ("GITHUB_TOKEN", "GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET", "ANTHROPIC_ADMIN_KEY"):
            monkeypatch.delenv(name, raising=False)

    @property
    def secrets_file(self) -> Any:
        return self.config / "toolreeve" / "secrets.toml"

    def keep(self, secrets: Mapping[str, str]) -> None:
        self.secrets_file.parent.mkdir(parents=True, exist_ok=True)
        self.secrets_file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in secrets.items()))
        self.secrets_file.chmod(0o600)

    def reeve(self, web: WebServer, *enabled: str, **options: Any) -> Toolreeve:
        return self.world.reeve(settings=connected_settings(self.world, web, *enabled), **options)
