"""What adopting saves, measured or not claimed."""

import json
import re
import sys

from tests.cli.adopt.homes import put
from tests.cli.conftest import Shell

SERVER = """
import json, sys

TOOL = {"name": "t", "description": "long " * 1000, "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked.get("method") == "tools/list":
        result = {"tools": [TOOL]}
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_nothing_is_claimed_about_tokens_that_was_not_measured(installed: Shell) -> None:
    done = installed.run("adopt", "--no-count")

    assert "were not measured" in done.err
    assert "→" not in done.out


def test_tokens_are_measured_on_the_lists_of_servers_that_answer(shell: Shell) -> None:
    server = put(shell.home / "server.py", SERVER)
    good, away = {"command": sys.executable, "args": [str(server)]}, {"command": "/none/such"}
    put(shell.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"good": good, "away": away}}))
    put(shell.home / ".claude.json", json.dumps({"mcpServers": {"good": good}}))
    put(shell.home / ".gemini/settings.json", json.dumps({"mcpServers": {"away": away}}))

    done = shell.spawn("adopt")

    rows = {line.split("  ")[0]: line for line in done.out.splitlines()}
    before, after = (int(number) for number in re.search(r"(\d+) → (\d+)", rows["Claude Code"]).groups())  # type: ignore[union-attr]
    assert before > 1000 > after
    assert f" {before} → {after}, 1 not counted " in rows["Cursor"]
    assert " not counted " in rows["Gemini CLI"]
    assert "→" not in rows["Gemini CLI"]
    assert f" {2 * before} → {2 * after}" in rows["total counted"]
    assert "'away' is not counted, its tools could not be listed" in done.err


def test_servers_of_the_workspace_are_not_started_to_count_them(shell: Shell) -> None:
    started = shell.home / "started"
    entry = {"command": "touch", "args": [str(started)]}
    put(shell.workspace / ".mcp.json", json.dumps({"mcpServers": {"evil": entry}}))

    done = shell.spawn("adopt", "--project", "--count")

    assert "one entry now" in done.out
    assert not started.exists()
