"""What looks like a secret in a server's entry is shown nowhere, and what does not is shown as it stands."""

import logging
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.upstream.server_tables import light, tool
from tests.world import World
from toolreeve.config.mcp_servers.secret_values import find_secrets, redact_arguments
from toolreeve.record.audit import Filter

KEY = "ghp_" + "a1B2" * 6


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["--token", "hunter-two-2"], ["--token", "[redacted]"]),
        (["--api-key=hunter2"], ["--api-key=[redacted]"]),
        (["--api-key", "--verbose"], ["--api-key", "--verbose"]),
        (["API_TOKEN=hunter2", "MODE=fast"], ["API_TOKEN=[redacted]", "MODE=fast"]),
        (["--header", "Authorization: Bearer hunter2"], ["--header", "Authorization: Bearer [redacted]"]),
        ([KEY, f"x{{{KEY}}}"], ["[redacted]", "x{[redacted]}"]),
        (["postgres://ada:hunter2@db/x"], ["postgres://ada:[redacted]@db/x"]),
        (["https://a/?q=1&access_token=hunter2#x"], ["https://a/?q=1&access_token=[redacted]#x"]),
        (["--token", "${TOKEN}", "--key=${secret:KEY}"], ["--token", "${TOKEN}", "--key=${secret:KEY}"]),
        (["--max-tokens", "100", "--token-file", "/run/t"], ["--max-tokens", "100", "--token-file", "/run/t"]),
        (["https://a/b", "C:\\x", "-", "--", "=", ""], ["https://a/b", "C:\\x", "-", "--", "=", ""]),
    ],
)
def test_arguments_are_shown_without_what_looks_like_a_secret(args: list[str], shown: list[str]) -> None:
    assert redact_arguments(args) == shown


def test_secrets_are_found_in_every_part_of_an_entry_and_short_ones_are_left() -> None:
    env = {"API_TOKEN": "first-secret", "TOKEN_FILE": "/run/secret-file", "PASSWORD": "short", "PLAIN": f"is {KEY}"}
    headers = {"Authorization": "Bearer second-secret", "X-Trace": "harmless-value"}

    found = find_secrets(
        ["--password", "third-secret", "https://u:fourth-secret@a/"], env, headers, {"redirect_port": 1}
    )

    assert found == ("third-secret", "fourth-secret", "first-secret", KEY, "second-secret")


@given(st.lists(st.text(st.characters(), max_size=30), max_size=6))
@example(["\ud800"])
def test_any_arguments_can_be_shown(args: list[str]) -> None:
    assert len(redact_arguments(args)) == len(args)
    assert all(isinstance(each, str) for each in find_secrets(args))


async def test_a_secret_that_was_written_into_an_entry_is_nowhere_to_be_read(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    table = light({"tools": [tool("echo")]}, danger="safe", env={"API_TOKEN": "secret-in-env"})
    table["args"] = [*table["args"], "--password", "secret-in-args"]
    leaky = {"command": "/bin/sh", "args": ["-c", "echo no $0 $1 $API_TOKEN >&2", "--token=secret-in-args", KEY]}

    async with world.reeve(mcp_servers={"s": table, "leaky": leaky | {"env": table["env"]}}) as reeve:
        told = await reeve.call("s__echo", said="secret-in-args and secret-in-env")
        away = await reeve.call("leaky__echo")
        shown = [status.to_dict() for status in reeve.fleet.status()]
        noted = [record.to_dict() for record in await reeve.audit.list(Filter())]

    assert told.success
    assert away.error is not None
    assert "no --token=[redacted] [redacted] [redacted]" in away.error.message
    written = f"{told.to_mcp()}{away.to_mcp()}{shown}{noted}{caplog.text}".encode() + world.database_bytes()
    for secret in ("secret-in-args", "secret-in-env", KEY):
        assert secret.encode() not in written


async def test_the_server_itself_is_given_what_was_written(world: World, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f'printf "%s %s" "$1" "$API_TOKEN" >{seen}'
    table = {"command": "/bin/sh", "args": ["-c", script, "--token", KEY], "env": {"API_TOKEN": "secret-in-env"}}

    async with world.reeve(mcp_servers={"s": table}):
        assert seen.read_text() == f"{KEY} secret-in-env"


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "env": {"API_TOKEN": 1234567890}},
        {"command": "x", "env": "API_TOKEN=secret-1234567890"},
        {"command": "x", "args": "--token 1234567890"},
        {"command": "x", "args": ["ok", {"password": "1234567890"}]},
        {"command": "x", "args": ["--token", "1234567890\0"]},
        {"url": "https://a/", "headers": "Authorization: 1234567890"},
        {"url": "ftp://a:1234567890@b/"},
        {"url": "https://a/", "oauth": {"client_secret": ["1234567890"]}},
    ],
)
def test_problems_of_an_entry_do_not_show_its_secrets(world: World, entry: dict[str, object]) -> None:
    with pytest.warns(UserWarning, match="mcp_servers.s") as told:
        problems = world.reeve(mcp_servers={"s": entry}).problems

    assert len(problems) == 1
    assert "1234567890" not in f"{problems}{[str(each.message) for each in told]}"
