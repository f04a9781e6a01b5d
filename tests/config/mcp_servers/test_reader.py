from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolreeve.config.mcp_servers.expansion import Surroundings
from toolreeve.config.mcp_servers.reader import MAX_SERVERS, Origin, is_ourselves, parse_servers
from toolreeve.config.mcp_servers.server_list import Servers
from toolreeve.core.danger import DangerLevel
from toolreeve.upstream.server_spec import ServerSpec

KNOWN = Surroundings(
    environ={"TOKEN": "t0ken", "PATH_TO": "/opt", "PASSED": "yes"},
    secret={"KEY": "s3cret"}.get,
    workspace="/project",
    home="/home/ada",
)


def read(document: Any, *, own: bool = False, project: bool = False, base: Path = Path("/base")) -> Servers:
    return parse_servers(document, Origin(source="f.json", base=base, own=own, project=project), KNOWN)


def one(entry: Mapping[str, Any], **how: Any) -> ServerSpec:
    found = read({"mcpServers": {"x": entry}}, **how)
    assert found.problems == []
    return found.specs[0]


def refused(entry: Any, **how: Any) -> str:
    found = read({"mcpServers": {"x": entry, "fine": {"command": "true"}}}, **how)
    assert [spec.name for spec in found.specs] == ["fine"]
    assert len(found.problems) == 1
    return str(found.problems[0])


def test_a_stdio_server_is_resolved_whole() -> None:
    entry = {
        "command": "~/bin/server",
        "args": ["--root", "${PATH_TO}", "${workspaceFolder}"],
        "env": {"API_KEY": "${secret:KEY}", "MODE": "${MODE:-fast}"},
        "env_pass": ["PASSED", "NOT_SET"],
        "cwd": "sub",
        "timeout": 5,
        "connect_timeout": 2,
        "allow": ["read_*"],
        "deny": ["read_all"],
        "danger": {"read_*": "safe"},
        "trusted": True,
        "prefix": "",
        "sandbox": {"network": "none"},
    }

    assert one(entry, own=True) == ServerSpec(
        name="x",
        kind="stdio",
        place="'~/bin/server' --root '${PATH_TO}' '${workspaceFolder}'",
        source="f.json",
        command="/home/ada/bin/server",
        args=("--root", "/opt", "/project"),
        env={"PASSED": "yes", "API_KEY": "s3cret", "MODE": "fast"},
        cwd="/base/sub",
        timeout=5.0,
        connect_timeout=2.0,
        allow=("read_*",),
        deny=("read_all",),
        danger={"read_*": DangerLevel.SAFE},
        trusted=True,
        prefix="",
        sandbox={"network": "none"},
        secrets=("KEY",),
        secret_values=("s3cret",),
    )


@pytest.mark.parametrize(
    ("entry", "kind", "url"),
    [
        ({"url": "https://a/mcp"}, "http", "https://a/mcp"),
        ({"serverUrl": "https://a/mcp"}, "http", "https://a/mcp"),
        ({"httpUrl": "https://a/mcp"}, "http", "https://a/mcp"),
        ({"type": "streamable-http", "url": "https://a/mcp"}, "http", "https://a/mcp"),
        ({"type": "streamableHttp", "url": "https://a/mcp"}, "http", "https://a/mcp"),
        ({"transport": "sse", "url": "https://a/sse"}, "sse", "https://a/sse"),
        ({"transport": {"type": "sse", "url": "https://a/sse"}}, "sse", "https://a/sse"),
        ({"transport": {"type": "stdio", "command": "x"}}, "stdio", None),
        ({"command": "x", "transport": "stdio"}, "stdio", None),
    ],
)
def test_the_transport_is_set_or_follows_from_command_and_url(
    entry: dict[str, Any], kind: str, url: str | None
) -> None:
    spec = one(entry)

    assert (spec.kind, spec.url) == (kind, url)


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"x": {"command": "c"}}},
        {"McpServers": {"x": {"command": "c"}}},
        {"mcp_servers": {"x": {"command": "c"}}},
        {"servers": {"x": {"type": "stdio", "command": "c"}}, "inputs": []},
        {"context_servers": {"x": {"source": "custom", "command": "c"}}},
        {"context_servers": {"x": {"command": {"path": "c"}}}},
        {"mcp": {"servers": {"x": {"command": "c"}}}},
        [{"name": "x", "command": "c", "args": [], "transport": "stdio"}],
        {"mcp_servers": [{"name": "x", "transport": {"type": "stdio", "command": "c"}}]},
    ],
)
def test_every_shape_of_document_names_the_same_server(document: Any) -> None:
    found = read(document)

    assert [(spec.name, spec.command) for spec in found.specs] == [("x", "c")]
    assert found.problems == []
    assert found.notices == []


@pytest.mark.parametrize(("said", "own", "seconds"), [(30, False, 30), (30_000, False, 30), (30_000, True, 30_000)])
def test_large_timeouts_of_other_clients_are_milliseconds_and_ours_never(said: int, own: bool, seconds: float) -> None:
    assert one({"command": "c", "timeout": said}, own=own).timeout == seconds


def test_the_keys_of_codex_are_translated() -> None:
    entry = {
        "url": "https://a/mcp",
        "bearer_token_env_var": "TOKEN",
        "http_headers": {"X-Team": "ops"},
        "env_http_headers": {"X-From": "PASSED"},
        "startup_timeout_ms": 2500,
        "tool_timeout_sec": 7.5,
        "enabled_tools": ["a"],
        "disabled_tools": ["b"],
    }

    spec = one(entry)

    assert dict(spec.headers) == {"X-Team": "ops", "Authorization": "Bearer t0ken", "X-From": "yes"}
    assert (spec.connect_timeout, spec.timeout, spec.allow, spec.deny) == (2.5, 7.5, ("a",), ("b",))


@pytest.mark.parametrize("key", ["autoApprove", "alwaysAllow", "trust"])
@pytest.mark.parametrize("own", [True, False])
def test_auto_approve_keys_of_other_clients_are_ignored_with_a_notice(key: str, own: bool) -> None:
    found = read({"mcpServers": {"x": {"command": "c", key: ["*"]}}}, own=own)

    assert found.notices == [f"f.json: {key} of the server 'x' is ignored: only the policy allows calls"]
    assert found.specs[0].trusted is False
    assert found.specs[0].danger == {}


def test_unknown_keys_are_noted_in_foreign_files_and_refused_in_ours() -> None:
    entry = {"command": "c", "comand": "d"}

    foreign = read({"mcpServers": {"x": entry}})

    assert len(foreign.specs) == 1
    assert foreign.notices == ["f.json: comand of the server 'x' is not supported"]
    assert "mcpServers.x.comand: unknown key (did you mean 'command'?)" in refused(entry, own=True)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"command": "${NOT_SET}"}, "mcpServers.x.command: the variable NOT_SET is not set"),
        ({"command": "c", "args": ["${NOT_SET}"]}, "mcpServers.x.args: the variable NOT_SET is not set"),
        ({"command": "c", "env": {"A": "${NOT_SET}"}}, "mcpServers.x.env.A: the variable NOT_SET is not set"),
        ({"url": "https://a/${NOT_SET}"}, "mcpServers.x.url: the variable NOT_SET is not set"),
        ({"url": "https://a/", "headers": {"K": "${secret:NO}"}}, "mcpServers.x.headers.K: the secret NO is not set"),
        ({"command": "${input:key}"}, "mcpServers.x.command: ${input:key} asks for input"),
        ({}, "has neither a command nor a url"),
        ({"command": "c", "url": "https://a/"}, "has both a command and a url"),
        ({"command": "c", "type": "http"}, "is 'http', which does not go with a command"),
        ({"type": "carrier-pigeon", "command": "c"}, "must be one of"),
        ({"command": [7]}, "expected string"),
        ({"command": ""}, "mcpServers.x.command"),
        ({"command": "c", "args": "--x"}, "expected array"),
        ({"command": "c", "env": {"A": 1}}, "expected string"),
        ({"command": "c", "env": {"A=B": "1"}}, "not a valid variable name"),
        ({"command": "c\0d"}, "cannot be passed to a program or server"),
        ({"command": "c", "args": ["\ud800"]}, "cannot be passed to a program or server"),
        ({"command": "c", "timeout": 0}, "mcpServers.x.timeout"),
        ({"command": "c", "timeout": float("nan")}, "mcpServers.x"),
        ({"command": "c", "prefix": "a__b"}, "separates servers from tools"),
        ({"command": "c", "prefix": "mcp"}, "reserved"),
        ({"command": "c", "danger": "harmless"}, "mcpServers.x.danger"),
        ({"url": "ftp://a/"}, "is not an http or https URL"),
        ({"url": "https:///x"}, "is not an http or https URL"),
        ({"url": "http://[::1"}, "is not an http or https URL"),
        ({"url": "https://a/", "headers": {"A": "b\r\nX: y"}}, "not a valid header"),
        ({"url": "https://a/", "headers": {"A:": "b"}}, "not a valid header"),
        (None, "is not a table"),
        ("npx server", "is not a table"),
    ],
)
def test_a_bad_server_is_left_out_alone_with_the_reason(entry: Any, problem: str) -> None:
    assert problem in refused(entry)


def test_a_server_that_is_turned_off_needs_none_of_its_variables() -> None:
    spec = one({"command": "${NOT_SET}", "disabled": True})

    assert (spec.enabled, spec.command) == (False, "${NOT_SET}")


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "toolreeve", "args": ["mcp"]},
        {"command": "/opt/venv/bin/toolreeve", "args": ["mcp", "--search"]},
        {"command": "python3", "args": ["-m", "toolreeve", "mcp"]},
        {"command": "python3", "args": ["-P", "-m", "toolreeve", "mcp", "--search"]},
        {"transport": {"type": "builtin"}},
    ],
)
def test_we_are_not_our_own_upstream(entry: dict[str, Any]) -> None:
    found = read({"mcpServers": {"x": entry}})

    assert found == Servers()


def test_a_projects_file_cannot_trust_its_own_servers() -> None:
    found = read(
        {"mcpServers": {"x": {"command": "c", "trusted": True, "danger": {"*": "safe"}, "deny": ["y"]}}}, project=True
    )

    spec = found.specs[0]
    assert (spec.trusted, dict(spec.danger), spec.deny) == (False, {}, ("y",))
    assert [notice.split(" of ")[0] for notice in found.notices] == ["f.json: trusted", "f.json: danger"]


@pytest.mark.parametrize("prefix", ["git", ""])
def test_a_projects_file_cannot_give_its_tools_the_names_of_another_server(prefix: str) -> None:
    found = read({"mcpServers": {"x": {"command": "c", "prefix": prefix}}}, project=True)

    assert found.specs[0].prefix is None
    assert "prefix of a project's own server is ignored" in found.notices[0]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://evil.example/@good.example/mcp", "https://evil.example/@good.example/mcp"),
        ("https://evil.example#@good.example/mcp", "https://evil.example"),
        ("https://evil.example?@good.example/mcp", "https://evil.example"),
        ("https://good.example@evil.example/mcp", "https://evil.example/mcp"),
    ],
)
def test_the_host_that_is_shown_is_the_host_that_is_reached(url: str, shown: str) -> None:
    assert one({"url": url}).place == shown


def test_a_projects_file_may_call_its_servers_more_dangerous() -> None:
    assert one({"command": "c", "danger": "critical"}, project=True).danger_of("any") is DangerLevel.CRITICAL


def test_nothing_secret_is_shown_of_a_server() -> None:
    spec = one({"url": "https://user:pass@a/mcp?key=k3y", "headers": {"Authorization": "Bearer ${secret:KEY}"}})

    assert spec.place == "https://a/mcp"
    assert not any(word in repr(spec) for word in ("pass", "k3y", "s3cret"))


def test_two_names_that_normalise_to_the_same_are_a_problem() -> None:
    found = read({"mcpServers": {"a b": {"command": "one"}, "a-b": {"command": "two"}}})

    assert [spec.command for spec in found.specs] == ["one"]
    assert "has the name 'a-b' of the server in f.json" in str(found.problems[0])


def test_an_env_file_is_read_and_the_entry_wins_over_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# keys\nexport A=1\nB='two words' # why\n\nC=\"x\"\n")

    spec = one({"command": "c", "envFile": ".env", "env": {"C": "y"}}, base=tmp_path)

    assert spec.env == {"A": "1", "B": "two words", "C": "y"}


def test_a_bad_or_missing_env_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("A=1\nnot a line\n")

    assert "not a file of NAME=value lines" in refused({"command": "c", "envFile": "bad"}, base=tmp_path)
    assert "cannot be read" in refused({"command": "c", "envFile": "none"}, base=tmp_path)


def test_a_relative_program_starts_at_the_file_that_names_it_and_a_bare_one_is_looked_up() -> None:
    assert one({"command": "./run.sh"}).command == "/base/run.sh"
    assert one({"command": "npx"}).command == "npx"


def test_no_more_servers_are_read_than_anybody_has() -> None:
    found = read({"mcpServers": {f"s{number}": {"command": "c"} for number in range(MAX_SERVERS + 1)}})

    assert len(found.specs) == MAX_SERVERS
    assert "names more than" in str(found.problems[0])


def test_allow_and_deny_decide_what_is_offered_and_a_deny_wins() -> None:
    spec = one({"command": "c", "allow": ["read_*", "list"], "deny": ["read_secret"]})

    assert [tool for tool in ("read_file", "list", "read_secret", "write") if spec.offers(tool)] == [
        "read_file",
        "list",
    ]
    assert one({"command": "c", "allow": []}).offers("read") is False
    assert one({"command": "c"}).offers("read") is True


def test_the_very_name_of_a_tool_says_its_danger_before_patterns_do() -> None:
    spec = one({"command": "c", "danger": {"*": "low", "drop": "critical"}})

    assert (spec.danger_of("drop"), spec.danger_of("other")) == (DangerLevel.CRITICAL, DangerLevel.LOW)
    assert one({"command": "c"}).danger_of("drop") is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(
    [
        "command",
        "args",
        "env",
        "url",
        "headers",
        "type",
        "transport",
        "timeout",
        "danger",
        "env_vars",
        "disabled",
        "prefix",
    ]
)


@given(
    st.dictionaries(st.text(max_size=6), st.dictionaries(_KEYS, _JSON, max_size=4) | _JSON, max_size=4), st.booleans()
)
@example({"s": {"command": [None], "args": 1}}, False)
def test_whatever_a_file_holds_becomes_servers_and_problems_but_never_a_crash(value: Any, own: bool) -> None:
    found = read({"mcpServers": value}, own=own)

    ours = [raw for raw in value.values() if isinstance(raw, dict) and is_ourselves(raw)]
    assert len(found.specs) + len(found.problems) + len(ours) == len(value)


@pytest.mark.parametrize(
    "argv",
    [
        ["toolreeve", "mcp"],
        ["/opt/bin/toolreeve", "mcp", "--search"],
        ["toolreeve", "--workspace", "/home/ada/project", "mcp"],
        ["toolreeve", "--workspace=/p", "--mode", "plan", "-v", "mcp"],
        ["python", "-P", "-m", "toolreeve", "--workspace", "/p", "mcp"],
        ["uvx", "toolreeve", "mcp"],
        ["uvx", "toolreeve@0.2.0", "mcp"],
        ["uv", "run", "--with", "toolreeve", "toolreeve", "mcp"],
        ["env", "A=b", "toolreeve", "mcp"],
    ],
)
def test_an_entry_that_starts_us_is_no_server(argv: list[str]) -> None:
    assert is_ourselves({"command": argv[0], "args": argv[1:]})


@pytest.mark.parametrize(
    "argv",
    [
        ["toolreeve", "serve", "--mcp"],
        ["toolreeve-system-info"],
        ["toolreeve", "--workspace", "mcp"],
        ["files", "/home/ada/toolreeve", "--verbose"],
        ["files", "--root", "/home/ada/toolreeve", "stdio", "mcp"],
    ],
)
def test_an_entry_that_only_looks_like_us_is_a_server(argv: list[str]) -> None:
    assert not is_ourselves({"command": argv[0], "args": argv[1:]})


def test_only_a_projects_own_server_is_started_in_the_workspace() -> None:
    entry = {"command": "python", "args": ["-m", "server"]}
    code = parse_servers({"mcpServers": {"x": entry}}, Origin(source="code", base=Path("/cwd"), own=True), KNOWN)

    assert one(entry).cwd == "/home/ada"
    assert one(entry, own=True).cwd == "/home/ada"
    assert code.specs[0].cwd == "/cwd"
    assert one(entry, project=True).cwd is None
    assert one({**entry, "cwd": "/there"}).cwd == "/there"
    assert one({**entry, "sandbox": {}}, own=True).cwd is None
