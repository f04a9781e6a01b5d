import json
from pathlib import Path
from typing import Any

import pytest

from tests.config.conftest import User
from toolreeve.config import Configuration, Settings, Workspace, from_settings
from toolreeve.config.servers import servers_from_code
from toolreeve.config.trust import TrustedFolders
from toolreeve.core.errors import ConfigError, ConfigErrors


def shared(user: User, **servers: Any) -> Path:
    path = user.workspace / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def trust(user: User) -> None:
    found = user.load()
    assert found.code is not None
    TrustedFolders(Path(found.settings.state.dir)).add(found.code.folder, found.code.digest)


def names(found: Configuration) -> list[str]:
    return [spec.name for spec in found.mcp_servers]


def test_servers_of_the_users_own_file_need_no_trust_and_know_their_lines(user: User) -> None:
    user.says(
        '[mcp_servers.a]\ncommand = "a"\n\n[mcpServers.b]\nurl = "https://b/mcp"\n[McpServers."C d"]\ncommand = "c"\n'
    )

    found = user.load()

    assert [(spec.name, spec.source) for spec in found.mcp_servers] == [
        ("b", f"{user.user_file}:4"),
        ("C-d", f"{user.user_file}:6"),
        ("a", f"{user.user_file}:1"),
    ]
    assert found.origins["mcp_servers"].startswith(str(user.user_file))
    assert found.notices == ()


def test_one_bad_server_stops_neither_the_others_nor_the_rest_of_the_file(user: User) -> None:
    user.says(
        '[limits]\ntimeout = 5\n[mcp_servers.bad]\ncommand = "${NOT_SET}"\n[mcp_servers.day]\ncommand = 1979-05-27\n'
        '[mcp_servers.good]\ncommand = "x"\n'
    )

    found = user.load()

    assert names(found) == ["good"]
    assert found.settings.limits.timeout == 5.0
    assert [(problem.line, problem.key) for problem in found.mcp_problems] == [
        (4, "mcp_servers.bad.command"),
        (5, "mcp_servers.day"),
    ]
    assert "the variable NOT_SET is not set" in found.notices[0]


def test_unknown_keys_of_a_server_in_our_own_file_are_refused(user: User) -> None:
    user.says('[mcp_servers.a]\ncommand = "a"\nalow = ["x"]\n')

    found = user.load()

    assert found.mcp_servers == ()
    assert "mcp_servers.a.alow: unknown key (did you mean 'allow'?)" in str(found.mcp_problems[0])
    assert found.mcp_problems[0].line == 3


def test_an_untrusted_workspace_gets_no_server_and_a_notice(user: User) -> None:
    path = shared(user, evil={"command": "touch", "args": ["/tmp/owned"]})
    user.project_file.write_text('[mcp_servers.worse]\ncommand = "touch"\n')

    found = user.load()

    assert found.mcp_servers == ()
    assert found.settings.mcp_servers == {}
    assert found.code is not None
    assert not found.code.trusted
    assert found.code.servers == ("evil: touch /tmp/owned", "worse: touch")
    assert [notice.split(": ", 1)[1] for notice in found.notices] == [
        "mcp_servers is ignored: the folder is not trusted (run `toolreeve trust`)",
        "its servers are ignored: the folder is not trusted (run `toolreeve trust`)",
    ]
    assert str(path) in found.notices[1]


def test_a_project_adds_a2a_agents_only_once_it_is_trusted_and_may_not_trust_itself(user: User) -> None:
    user.project_file.write_text('[a2a_agents.peer]\nurl = "https://peer.example"\ndanger = "safe"\ntrusted = true\n')
    untrusted = user.load()
    trust(user)
    (spec,) = user.load().mcp_servers

    assert (untrusted.mcp_servers, untrusted.settings.a2a_agents) == ((), {})
    assert untrusted.code is not None
    assert untrusted.code.servers == ("peer: https://peer.example",)
    assert "a2a_agents is ignored: the folder is not trusted" in untrusted.notices[0]
    assert (spec.name, spec.kind, spec.trusted, dict(spec.danger)) == ("peer", "a2a", False, {})


def test_a_trusted_workspace_gets_its_servers_until_a_file_changes(user: User) -> None:
    shared(user, one={"command": "one"})
    user.project_file.write_text('[mcp_servers.two]\ncommand = "two"\n')
    trust(user)
    assert names(user.load()) == ["two", "one"]

    shared(user, one={"command": "other"})

    changed = user.load()
    assert changed.mcp_servers == ()
    assert "not trusted" in changed.notices[-1]


def test_a_file_that_appears_after_the_trust_ends_it(user: User) -> None:
    user.project_file.write_text('[mcp_servers.two]\ncommand = "two"\n')
    trust(user)

    shared(user, one={"command": "one"})

    assert user.load().mcp_servers == ()


@pytest.mark.parametrize("args", [["server.py"], ["./lib/../server.py"], ["${workspaceFolder}/server.py"]])
def test_a_change_of_the_program_that_a_server_names_ends_the_trust(user: User, args: list[str]) -> None:
    program = user.workspace / "server.py"
    program.write_text("print(1)")
    (user.workspace / "lib").mkdir()
    shared(user, one={"command": "python", "args": args})
    trust(user)
    assert names(user.load()) == ["one"]
    assert str(program) in user.load().governing

    program.write_text("print(2)")

    assert user.load().mcp_servers == ()


def test_the_users_own_server_keeps_its_name(user: User) -> None:
    user.says('[mcp_servers.git]\ncommand = "mine"\n')
    shared(user, git={"command": "theirs"})
    trust(user)

    found = user.load()

    assert [spec.command for spec in found.mcp_servers] == ["mine"]
    assert f"the server 'git' is ignored: {user.user_file}:1 defines it already" in found.notices[0]


def test_a_project_says_nothing_about_its_own_trustworthiness(user: User) -> None:
    shared(user, one={"command": "one", "trusted": True})
    user.project_file.write_text('[mcp_servers.two]\ncommand = "two"\ntrusted = true\ndanger = "safe"\n')
    trust(user)

    found = user.load()

    assert [(spec.trusted, dict(spec.danger)) for spec in found.mcp_servers] == [(False, {}), (False, {})]
    assert len(found.notices) == 3


def test_the_shared_file_can_be_left_unread(user: User) -> None:
    shared(user, one={"command": "one"})
    user.says("[mcp]\nproject_file = false\n")

    found = user.load()

    assert (found.code, found.notices) == (None, ())


@pytest.mark.parametrize("content", ["{", '{"mcpServers": {"a": 1, "a": 2}}', "\xff\xfe"])
def test_a_malformed_shared_file_is_reported_and_stops_nothing(user: User, content: str) -> None:
    (user.workspace / ".mcp.json").write_text(content, encoding="latin-1")
    user.says('[mcp_servers.mine]\ncommand = "mine"\n')

    found = user.load()

    assert names(found) == ["mine"]
    assert [Path(problem.source).name for problem in found.mcp_problems] == [".mcp.json"]


def test_a_shared_file_that_would_hold_us_up_is_not_read(user: User) -> None:
    import os

    os.mkfifo(user.workspace / ".mcp.json")

    assert "is not a regular file" in str(user.load().mcp_problems[0])


def test_files_of_other_clients_are_read_when_the_user_names_them(user: User) -> None:
    (user.home / "mcp.json").write_text('{ // mine\n "servers": {"code": {"command": "${CMD}"}}, "inputs": [] }')
    (user.home / "config.toml").write_text('[mcp_servers.codex]\ncommand = "codex-server"\nrequired = true\n')
    user.says('[mcp]\nfiles = ["~/mcp.json", "~/config.toml", "~/none.json"]\n')

    found = user.load(CMD="run")

    assert [(spec.name, spec.command) for spec in found.mcp_servers] == [("code", "run"), ("codex", "codex-server")]
    assert [problem.problem for problem in found.mcp_problems] == ["does not exist"]


def test_a_project_names_no_files_of_other_clients(user: User) -> None:
    user.project_file.write_text('[mcp]\nfiles = ["x.json"]\n')

    with pytest.raises(ConfigErrors, match="may not set this"):
        user.load()


def test_no_tool_may_write_what_tells_a_client_which_programs_to_start(user: User) -> None:
    user.says('[mcp]\nfiles = ["~/mcp.json"]\n')

    governing = user.load().governing

    for name in (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"):
        assert str(user.workspace / name) in governing
    assert str(user.home / "mcp.json") in governing


def test_secrets_come_from_the_users_private_file_and_are_shown_nowhere(user: User) -> None:
    user.says('[mcp_servers.a]\nurl = "https://a/"\nheaders = { Authorization = "Bearer ${secret:KEY}" }\n')
    secrets = user.user_file.with_name("secrets.toml")
    secrets.write_text('KEY = "s3cret-value"\n')
    secrets.chmod(0o600)

    found = user.load()

    assert found.mcp_servers[0].headers == {"Authorization": "Bearer s3cret-value"}
    assert found.mcp_servers[0].secret_values == ("s3cret-value",)
    assert "s3cret-value" not in repr(found)

    secrets.chmod(0o644)
    assert "accessible to other users" in str(user.load().mcp_problems[0])


def test_credentials_are_referred_to_and_never_written_into_settings(user: User) -> None:
    user.says('[mcp]\nstate_key = ["hunter2-hunter2"]\n[[serve.tokens]]\nuser = "ada"\ntoken = "hunter2-hunter2"\n')

    with pytest.raises(ConfigErrors) as caught:
        user.load()

    assert [(problem.line, problem.problem) for problem in caught.value.problems] == [
        (5, "must be written as ${secret:NAME}"),
        (2, "must be written as ${secret:NAME}"),
    ]
    assert "hunter2" not in str(caught.value)


def test_tokens_are_tables_and_what_they_refer_to_is_revealed_on_demand(user: User) -> None:
    digest = "a" * 64
    user.says(
        '[[serve.tokens]]\nuser = "ada"\nrole = "admin"\ntoken = "${secret:ADA}"\n'
        f'[[serve.tokens]]\nuser = "bob"\nsha256 = "{digest}"\ntools = ["git__*"]\n'
    )

    found = user.load(ADA="ada-token")

    assert found.settings.serve.tokens == (
        {"user": "ada", "role": "admin", "token": "${secret:ADA}"},
        {"user": "bob", "sha256": digest, "tools": ["git__*"]},
    )
    assert found.reveal("${secret:ADA}", key="serve.tokens") == "ada-token"
    with pytest.raises(ConfigError, match="the secret BOB is not set"):
        found.reveal("${secret:BOB}", key="serve.tokens")


@pytest.mark.parametrize("variable", ["TOOLREEVE_MCP_SERVERS", "TOOLREEVE_SERVE_TOKENS"])
def test_tables_have_no_variable(user: User, variable: str) -> None:
    with pytest.raises(ConfigErrors, match="no such setting"):
        user.load(None, **{variable: "{}"})


@pytest.mark.parametrize(
    "value",
    [
        {"x": {"command": "c"}},
        {"mcpServers": {"x": {"command": "c"}}},
        {"servers": {"x": {"command": "c"}}},
        [{"name": "x", "command": "c", "args": [], "transport": "stdio"}],
        [{"name": "x", "transport": {"type": "stdio", "command": "c"}}],
    ],
)
def test_code_may_pass_any_shape(user: User, value: Any) -> None:
    found = servers_from_code(value, user.load().known, base=user.workspace)

    assert [(spec.name, spec.command, spec.source) for spec in found.specs] == [("x", "c", "code")]


def test_code_may_pass_a_server_that_is_called_like_a_section(user: User) -> None:
    found = servers_from_code({"servers": {"command": "c"}}, user.load().known, base=user.workspace)

    assert [spec.name for spec in found.specs] == ["servers"]


def test_code_may_pass_a_file_nothing_or_nonsense(user: User) -> None:
    known = user.load().known
    path = shared(user, x={"command": "c"})

    assert [spec.name for spec in servers_from_code(".mcp.json", known, base=user.workspace).specs] == ["x"]
    assert [spec.name for spec in servers_from_code(path, known, base=Path("/")).specs] == ["x"]
    assert servers_from_code(None, known, base=user.workspace).specs == []
    with pytest.raises(ConfigError, match="is a int"):
        servers_from_code(3, known, base=user.workspace)


def test_settings_in_code_may_name_servers(user: User) -> None:
    settings = Settings(
        workspace=Workspace(dir=str(user.workspace)),
        mcp_servers={"a": {"command": "a"}, "b": {"command": "${NOT_SET}"}},
    )

    found = from_settings(settings, environ=user.environ, cwd=user.workspace)

    assert names(found) == ["a"]
    assert "NOT_SET" in str(found.mcp_problems[0])


@pytest.mark.parametrize(
    ("entry", "program"),
    [
        ({"command": "./run.sh", "cwd": "sub"}, "run.sh"),
        ({"command": "python", "args": ["server.py"], "cwd": "sub"}, "sub/server.py"),
        ({"command": "python", "args": ["${NOT_SET:-server.py}"]}, "server.py"),
        ({"command": "${NOT_SET:-./run.sh}"}, "run.sh"),
        ({"command": "node", "args": ["--import=./hook.mjs", "x"]}, "hook.mjs"),
        ({"command": "python", "args": ["-m", "pack.server"]}, "pack/server.py"),
        ({"command": "python", "args": ["-m", "pack"]}, "pack/__main__.py"),
        ({"command": "bash", "args": ["-c", "true"], "env": {"BASH_ENV": "${workspaceFolder}/env.sh"}}, "env.sh"),
        ({"command": "~/../work/run.sh"}, "run.sh"),
    ],
)
def test_a_program_of_the_workspace_ends_the_trust_when_it_changes_however_it_is_named(
    user: User, entry: dict[str, Any], program: str
) -> None:
    path = user.workspace / program
    path.parent.mkdir(exist_ok=True)
    path.write_text("before")
    shared(user, s=entry)
    trust(user)
    assert names(user.load()) == ["s"]

    path.write_text("after")

    assert names(user.load()) == []
    assert str(path) in user.load().governing


def test_trusting_a_folder_shows_what_its_servers_receive(user: User) -> None:
    entry = {
        "url": "https://a.example/mcp?key=${secret:PROD}",
        "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}", "X-Folder": "${workspaceFolder}"},
    }
    steered = {"command": "u", "cwd": "sub", "env": {"NODE_OPTIONS": "-r ./x.js", "API_KEY": "sk-12345678", "N": 1}}
    shared(user, s=entry, t={"command": "t", "env_pass": ["AWS_SECRET_ACCESS_KEY"]}, u=steered)

    code = user.load().code

    assert code is not None
    assert code.servers == (
        "s: https://a.example/mcp (is given ${secret:PROD}, ${GITHUB_TOKEN})",
        "t: t (is given ${AWS_SECRET_ACCESS_KEY})",
        "u: u (in sub) (with NODE_OPTIONS=-r ./x.js, API_KEY=[redacted], N=1)",
    )


def test_a_variable_whose_name_tells_that_it_is_secret_does_not_come_back_from_the_server(user: User) -> None:
    user.says(
        '[mcp_servers.a]\ncommand = "a"\n'
        'env = { A = "${GITHUB_TOKEN}", B = "${env:OURS}", C = "${PLAIN}" }\n'
        'env_pass = ["DEPLOY_KEY"]\n[record]\nredact_env = ["OURS"]\n'
    )

    (spec,) = user.load(
        GITHUB_TOKEN="ghp_0123456789", OURS="we-know-this", PLAIN="everybody", DEPLOY_KEY="k-0123456789"
    ).mcp_servers

    assert set(spec.secret_values) == {"ghp_0123456789", "we-know-this", "k-0123456789"}
