import os
from pathlib import Path

import pytest

from tests.config.conftest import User
from toolreeve.config import Policy, Settings, Workspace, from_settings, load
from toolreeve.core.errors import ConfigErrors


def test_with_no_configuration_the_current_directory_is_the_workspace(user: User) -> None:
    found = user.load()

    assert found.settings.workspace == Workspace(dir=str(user.workspace))
    assert found.settings.policy == Policy()
    assert found.settings.state.dir == str(user.home / ".local/state/toolreeve")
    assert set(found.origins.values()) == {"default"}


def test_xdg_directories_are_honoured_and_relative_ones_ignored(user: User, tmp_path: Path) -> None:
    found = user.load(XDG_STATE_HOME=str(tmp_path / "s"), XDG_CONFIG_HOME="relative")

    assert found.settings.state.dir == str(tmp_path / "s/toolreeve")
    assert found.user_file == user.user_file


def test_later_sources_win_and_each_value_tells_where_it_comes_from(user: User) -> None:
    user.says("[approval]\ntimeout = 10\n[limits]\ntimeout = 20\nconcurrency = 3\n")

    found = user.load({"limits.concurrency": 5}, TOOLREEVE_LIMITS_TIMEOUT="30")

    assert (found.settings.approval.timeout, found.settings.limits.timeout, found.settings.limits.concurrency) == (
        10.0,
        30.0,
        5,
    )
    assert found.origins["approval.timeout"] == f"{user.user_file}:2"
    assert found.origins["limits.timeout"] == "environment variable TOOLREEVE_LIMITS_TIMEOUT"
    assert found.origins["limits.concurrency"] == "argument"


def test_relative_paths_start_at_the_file_that_names_them(user: User) -> None:
    user.says('[workspace]\nextra_roots = ["data", "~/shared", "/srv"]\n')

    roots = user.load().settings.workspace.extra_roots

    assert roots == (str(user.user_file.parent / "data"), str(user.home / "shared"), "/srv")


def test_names_from_elsewhere_are_honoured_but_our_own_win(user: User, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    found = user.load(
        WORKSPACE_DIR=str(other),
        WORKSPACE_ALLOW_WRITE="False",
        TOOLREEVE_WORKSPACE_ALLOW_WRITE="yes",
        SEARCH_ALLOWED_BASES=f"{other},{user.home}",
    )

    assert found.settings.workspace == Workspace(
        dir=str(other), allow_write=True, search_allowed_bases=(str(other), str(user.home))
    )


def test_lists_in_variables_are_parted_or_json(user: User) -> None:
    found = user.load(
        TOOLREEVE_POLICY_ALLOWED_TOOLS="read_file, list_*",
        TOOLREEVE_POLICY_DENIED_TOOLS='["bash"]',
        TOOLREEVE_WORKSPACE_EXTRA_ROOTS=f"/a,b{os.pathsep}/c",
    )

    assert found.settings.policy.allowed_tools == ("read_file", "list_*")
    assert found.settings.policy.denied_tools == ("bash",)
    assert found.settings.workspace.extra_roots == ("/a,b", "/c")


@pytest.mark.parametrize("variable", ["TOOLREEVE_MCP_TOOLS", "TOOLREEVE_POLICY_DENIED_TOOLS", "COMMAND_ALLOWLIST"])
def test_a_list_of_nothing_but_separators_is_refused(user: User, variable: str) -> None:
    with pytest.raises(ConfigErrors, match=f"{variable}: expected array"):
        user.load(None, **{variable: " , ,"})


def test_denied_tools_of_all_sources_add_up(user: User) -> None:
    user.says('[policy]\ndenied_tools = ["a"]\n')
    user.project_file.write_text('[policy]\ndenied_tools = ["b"]\n')

    found = user.load({"policy.denied_tools": ("d",)}, TOOLREEVE_POLICY_DENIED_TOOLS="c")

    assert found.settings.policy.denied_tools == ("a", "b", "c", "d")


def test_an_empty_variable_counts_as_not_set(user: User) -> None:
    assert user.load(TOOLREEVE_POLICY_MODE="", WORKSPACE_DIR="").settings == user.load().settings


def test_all_problems_are_reported_at_once_with_location_and_fix(user: User) -> None:
    user.says('[workspace]\nallow_wrte = true\n\n[limits]\ntimeout = "soon"\nconcurrency = 0\n[polcy]\nmode = "plan"\n')

    with pytest.raises(ConfigErrors) as caught:
        user.load(TOOLREEVE_POLICY_MOD="plan", TOOLREEVE_APPROVAL_TIMEOUT="-1")

    places = {(Path(each.source).name, each.line, each.key) for each in caught.value.problems}
    assert places == {
        ("toolreeve.toml", 2, "workspace.allow_wrte"),
        ("toolreeve.toml", 5, "limits.timeout"),
        ("toolreeve.toml", 6, "limits.concurrency"),
        ("toolreeve.toml", 7, "polcy"),
        ("environment variable TOOLREEVE_POLICY_MOD", None, ""),
        ("environment variable TOOLREEVE_APPROVAL_TIMEOUT", None, ""),
    }
    assert "did you mean 'allow_write'?" in str(caught.value)
    assert "did you mean 'TOOLREEVE_POLICY_MODE'?" in str(caught.value)
    assert all(each.fix for each in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[workspace", "is not valid TOML"),
        ("workspace = 3", "is a table, not a value"),
        ("allow_write = false", "use workspace.allow_write"),
        ("[approval]\ntimeout = 1979-05-27", "which no setting accepts"),
        ("[approval]\ntimeout = nan", "which no setting accepts"),
        ("[approval]\ntimeout = 5\n[approval]\n", "is not valid TOML"),
        ('[policy]\nfiles = "a.yaml"', 'write a list: files = ["a.yaml"]'),
        ('[policy]\nmode = "pln"', "did you mean 'plan'?"),
        ("a = " + "[" * 5000, "is not valid TOML"),
    ],
)
def test_a_bad_file_is_reported_with_a_fix(user: User, text: str, says: str) -> None:
    user.says(text)

    with pytest.raises(ConfigErrors) as caught:
        user.load()

    assert says in str(caught.value)
    assert str(user.user_file) in str(caught.value)


def test_a_pipe_in_place_of_the_file_does_not_hold_us_up(user: User) -> None:
    os.mkfifo(user.project_file)

    with pytest.raises(ConfigErrors, match="not a regular file"):
        user.load()


def test_a_file_that_is_not_utf8_names_its_line(user: User) -> None:
    user.project_file.write_bytes(b"[policy]\n# caf\xe9\n")

    with pytest.raises(ConfigErrors, match=r"toolreeve\.toml:2: is not UTF-8"):
        user.load()


def test_a_workspace_that_is_not_there_is_an_error_that_names_who_asked(user: User) -> None:
    with pytest.raises(ConfigErrors, match=r"variable WORKSPACE_DIR: workspace\.dir: '/no/where' does not"):
        user.load(WORKSPACE_DIR="/no/where")


@pytest.mark.parametrize("where", ["user", "project", "environment"])
def test_bypass_is_never_taken_from_a_file_or_the_environment(user: User, where: str) -> None:
    text = '[policy]\nmode = "bypass"\n'
    if where == "user":
        user.says(text)
    elif where == "project":
        user.project_file.write_text(text)

    with pytest.raises(ConfigErrors, match="bypass cannot be set in a file or in the environment"):
        user.load(TOOLREEVE_POLICY_MODE="bypass" if where == "environment" else "")


def test_bypass_is_taken_from_the_caller(user: User) -> None:
    assert user.load({"policy.mode": "bypass"}).settings.policy.mode == "bypass"


def test_an_unknown_override_is_refused(user: User) -> None:
    with pytest.raises(ConfigErrors, match=r"did you mean 'policy\.mode'"):
        user.load({"policy.mod": "plan"})


def test_the_users_policy_file_is_found_beside_the_configuration(user: User) -> None:
    user.says("")
    policy = user.user_file.parent / "policy.yaml"
    policy.write_text("rules: []\n")

    assert user.load().settings.policy.files == (str(policy),)


def test_the_projects_policy_file_is_known_but_kept_apart(user: User) -> None:
    policy = user.workspace / "policy.yaml"
    policy.write_text("rules: []\n")

    found = user.load()

    assert (found.project_policy, found.settings.policy.files) == (policy, ())


def test_settings_from_code_are_taken_as_they_are_with_paths_made_absolute(user: User) -> None:
    user.says('[policy]\nmode = "strict"\n')

    found = from_settings(Settings(policy=Policy(mode="bypass")), environ=user.environ, cwd=user.workspace)

    assert found.settings.policy.mode == "bypass"
    assert found.settings.workspace.dir == str(user.workspace)
    assert found.settings.state.dir == str(user.home / ".local/state/toolreeve")


def test_the_processs_own_environment_is_the_default() -> None:
    assert load({"workspace.dir": "/"}).settings.workspace.dir == "/"
