import tomllib

from tests.cli.conftest import Shell
from toolreeve.config.fields import json_schema


def test_show_lists_every_value_with_its_origin(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").write_text('[policy]\nmode = "plan"\n')

    shown = shell.run("config", "show", "--json").json

    assert shown["policy.mode"] == {"value": "plan", "origin": f"{shell.workspace / 'toolreeve.toml'}:2"}
    assert shown["workspace.dir"] == {"value": str(shell.workspace), "origin": "default"}
    assert shown["state.dir"]["value"] == str(shell.home / ".local/state/toolreeve")


def test_show_is_a_table_for_people(shell: Shell) -> None:
    lines = shell.run("config", "show").out.splitlines()

    assert lines[0].split() == ["key", "value", "origin"]
    assert any(line.split() == ["policy.mode", '"default"', "default"] for line in lines)


def test_a_flag_wins_and_says_so(shell: Shell) -> None:
    shown = shell.run("config", "show", "--json", "--mode", "bypass").json

    assert shown["policy.mode"] == {"value": "bypass", "origin": "flag"}


def test_the_printed_schema_is_the_one_that_is_enforced(shell: Shell) -> None:
    assert shell.run("config", "schema").json == json_schema()


def test_a_bad_file_exits_with_2_and_names_file_line_key_and_fix(shell: Shell) -> None:
    path = shell.workspace / "toolreeve.toml"
    path.write_text("[workspace]\nallow_wrte = true\n")

    printed = shell.run("config", "show")
    as_json = shell.run("config", "show", "--json").json

    assert (printed.status, printed.out) == (2, "")
    assert f"{path}:2: workspace.allow_wrte: unknown key (did you mean 'allow_write'?)" in printed.err
    assert "fix: known keys here: dir, allow_write" in printed.err
    assert as_json["error"]["detail"][0]["line"] == 2


def test_an_ignored_setting_is_reported_once_on_stderr(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").write_text('tool_files = ["mine.py"]\n')

    printed = shell.run("config", "path", "--json")

    assert printed.err.count("the folder is not trusted") == 1
    assert printed.json["project"]["exists"] is True


def test_init_writes_files_that_validate_and_never_overwrites(shell: Shell) -> None:
    first = shell.run("init", "--policy", "--json")
    (shell.workspace / "toolreeve.toml").write_text('[policy]\nmode = "plan"\n')
    second = shell.run("init", "--policy")

    assert set(first.json.values()) == {"written"}
    assert "already exists" in second.out
    assert shell.run("config", "show", "--json").json["policy.mode"]["value"] == "plan"
    assert shell.run("policy", "check").status == 0


def test_every_line_that_init_comments_out_would_hold(shell: Shell) -> None:
    shell.run("init")
    path = shell.workspace / "toolreeve.toml"
    lines = path.read_text().splitlines()
    live = [line.removeprefix("# ") if " = " in line else line for line in lines]
    path.write_text("\n".join(live))

    shown = shell.run("config", "show", "--json")

    assert shown.status == 0
    assert shown.json["policy.budget_limit"]["value"] == tomllib.loads(path.read_text())["policy"]["budget_limit"]


def test_init_does_not_follow_a_dangling_link(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").symlink_to(shell.home / "elsewhere")

    shell.run("init")

    assert not (shell.home / "elsewhere").exists()


def test_trust_lets_the_projects_code_run_until_it_changes(shell: Shell) -> None:
    code = shell.workspace / "mine.py"
    code.write_text("")
    (shell.workspace / "toolreeve.toml").write_text('tool_files = ["mine.py"]\n')

    def tool_files() -> object:
        return shell.run("config", "show", "--json").json["tool_files"]["value"]

    assert tool_files() == []
    trusted = shell.run("trust", "--yes")
    assert (trusted.status, trusted.out) == (0, f"{shell.workspace}: trusted in its current state\n")
    assert f"will run as code: {code}" in trusted.err
    assert tool_files() == [str(code)]
    code.write_text("import os\n")
    assert tool_files() == []
    shell.run("trust", "--yes")
    assert shell.run("trust", "--revoke", "--json").json == {"folder": str(shell.workspace), "trusted": False}
    assert tool_files() == []


def test_credentials_in_tables_are_not_shown(shell: Shell) -> None:
    path = shell.home / ".config/toolreeve/toolreeve.toml"
    path.parent.mkdir(parents=True)
    path.write_text(
        '[mcp_servers.a]\ncommand = "a"\nenv = { KEY = "hunter2" }\n'
        f'[[serve.tokens]]\nuser = "ada"\nsha256 = "{"5" * 64}"\n'
    )

    shown = shell.run("config", "show", "--json")

    assert "hunter2" not in shown.out
    assert "5" * 64 not in shown.out
    assert shown.json["mcp_servers"]["value"] == ["a"]
    assert shown.json["serve.tokens"]["value"] == ["ada"]


def test_path_is_shown_while_a_file_has_the_error_whose_fix_names_it(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").write_text('[policy]\nallowed_tools = ["bash"]\n')

    refused = shell.run("config", "show")
    shown = shell.run("config", "path", "--json")

    assert "toolreeve config path" in refused.err
    assert shown.status == 0
    assert shown.json["user"]["path"] == str(shell.home / ".config/toolreeve/toolreeve.toml")
    assert shown.json["project"] == {"path": str(shell.workspace / "toolreeve.toml"), "exists": True}


def test_no_printed_configuration_shows_a_password_however_short(shell: Shell) -> None:
    folder = shell.home / ".config/toolreeve"
    folder.mkdir(parents=True)
    (folder / "toolreeve.toml").write_text(
        '[network]\nproxy = "http://u:hunter2@127.0.0.1:9"\n'
        '[mcp_servers.one]\ncommand = "echo"\nargs = ["--token", "abc123", "postgresql://me:hunter2@h/db"]\n'
        'env = { API_KEY = "k3y999", DATABASE_URL = "postgresql://me:hunter2@h/db" }\n'
    )
    commands = (("config", "show"), ("config", "show", "--json"), ("servers", "--json"), ("servers", "show", "one"))
    printed = "".join(done.out + done.err for done in (shell.run(*words) for words in commands))

    assert "proxy" in printed
    assert "last output" in printed
    for secret in ("hunter2", "abc123", "k3y999"):
        assert secret not in printed
