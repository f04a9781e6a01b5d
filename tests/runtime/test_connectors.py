from pathlib import Path

import pytest

from tests.world import World
from toolreeve.core.errors import ConfigError


def test_a_secrets_file_that_others_may_read_stops_only_who_needs_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    secrets = tmp_path / "config" / "toolreeve" / "secrets.toml"
    secrets.parent.mkdir(parents=True)
    secrets.write_text('ANTHROPIC_ADMIN_KEY = "sk-ant-admin-1234"\n')
    secrets.chmod(0o644)

    reeve = world.reeve()

    assert "anthropic_usage" not in reeve.tools
    assert "read_file" in reeve.tools
    with pytest.raises(ConfigError, match="chmod 600"):
        reeve.configuration.secret_source.find("ANTHROPIC_ADMIN_KEY")
