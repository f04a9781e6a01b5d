"""What a dry run shows, and that it does nothing else."""

import json

from tests.cli.adopt.homes import everything, own, put
from tests.cli.conftest import Shell


def test_a_dry_run_shows_the_difference_and_changes_nothing(installed: Shell) -> None:
    before = everything(installed)

    done = installed.run("adopt", "--no-count", "--dry-run")

    assert everything(installed) == before
    assert f"+++ {installed.home}/.codex/config.toml" in done.out
    assert "-[mcp_servers.docs]" in done.out
    assert "+[mcp_servers.toolreeve]" in done.out
    assert "would become one entry" in done.out


def test_a_dry_run_shows_no_secret_and_takes_nothing_else_out(shell: Shell) -> None:
    put(
        shell.home / ".claude.json",
        """{
  "primaryApiKey": "sk-ant-api03-0123456789abcdef",
  "mcpServers": {
    "db": {"command": "db", "args": ["--dsn", "postgres://u:hunter-two@h/db"], "env": {"API_TOKEN": "quo\\"te-hunter"}},
    "web": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer hunter-three", "X": "${KEY}"}},
    "pg": {"command": "p", "args": ["postgresql://me:hunter2@h/db", "--token", "abc12"], "env": {"KEY": "Bearer x1y2z"}}
  }
}
""",
    )

    done = shell.run("adopt", "--no-count", "--dry-run")

    for secret in ("hunter-two", "te-hunter", "hunter-three", "0123456789abcdef", "hunter2", "abc12", "x1y2z"):
        assert secret not in done.out + done.err
    assert '+args = ["--dsn", "postgres://u:[redacted]@h/db"]' in done.out
    assert '+headers = { Authorization = "[redacted]", X = "${KEY}" }' in done.out
    assert "they would be moved unchanged" in done.err
    shell.run("adopt", "--no-count")
    assert own(shell)["mcp_servers"]["db"]["env"] == {"API_TOKEN": 'quo"te-hunter'}


def test_a_dry_run_starts_no_server(shell: Shell) -> None:
    put(shell.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"a": {"command": "touch", "args": ["/none/x"]}}}))

    done = shell.run("adopt", "--dry-run", "--json")

    assert done.json["tokens"] is None
