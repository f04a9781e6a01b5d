import pytest

from tests.config.conftest import User
from toolreeve.config.trust import TrustedFolders
from toolreeve.core.errors import ConfigErrors


def test_a_project_may_tighten(user: User) -> None:
    user.says("[policy]\nbudget_limit = 10\n")
    user.project_file.write_text(
        '[workspace]\nallow_write = false\n[policy]\nmode = "plan"\nbudget_limit = 2\ndenied_tools = ["bash"]\n'
        "[limits]\ntimeout = 5\n"
    )

    settings = user.load().settings

    assert not settings.workspace.allow_write
    assert (settings.policy.mode, settings.policy.budget_limit, settings.policy.denied_tools) == (
        "plan",
        2.0,
        ("bash",),
    )
    assert settings.limits.timeout == 5.0


def test_a_project_cannot_loosen_what_the_user_chose(user: User) -> None:
    user.says(
        '[workspace]\nallow_write = false\n[policy]\nmode = "strict"\nbudget_limit = 1\ndenied_tools = ["bash"]\n'
        "[approval]\ntimeout = 5\n"
    )
    before = user.load().settings
    user.project_file.write_text(
        '[workspace]\nallow_write = true\n[policy]\nmode = "default"\nbudget_limit = 100\ndenied_tools = []\n'
        "[approval]\ntimeout = 500\n"
    )

    found = user.load()

    assert found.settings == before
    assert len(found.notices) == 5
    assert f"{user.project_file}:4: policy.mode is ignored: a project may only tighten 'strict'" in found.notices


@pytest.mark.parametrize("mode", ["plan", "default"])
def test_strict_and_plan_are_not_exchanged_by_a_project(user: User, mode: str) -> None:
    user.says('[policy]\nmode = "strict"\n')
    user.project_file.write_text(f'[policy]\nmode = "{mode}"\n')

    assert user.load().settings.policy.mode == "strict"


@pytest.mark.parametrize(
    "text",
    [
        '[policy]\nallowed_tools = ["bash"]',
        '[policy]\nfiles = ["mine.yaml"]',
        '[workspace]\nextra_roots = ["/"]',
        '[workspace]\nsensitive_allow = [".env"]',
        '[workspace]\nsearch_allowed_bases = ["/"]',
        '[workspace]\ndir = "/"',
        '[state]\ndir = "/tmp/mine"',
    ],
)
def test_a_project_may_not_widen_anything(user: User, text: str) -> None:
    user.project_file.write_text(text)

    with pytest.raises(ConfigErrors, match=r"toolreeve\.toml:2: .*a project's file may not set this"):
        user.load()


def test_a_projects_code_is_ignored_until_the_folder_is_trusted(user: User) -> None:
    code = user.workspace / "mine.py"
    code.write_text("")
    user.project_file.write_text('tool_files = ["mine.py"]\n')

    found = user.load()

    assert found.settings.tool_files == ()
    assert "not trusted (run `toolreeve trust`)" in found.notices[0]
    assert found.code is not None
    assert (found.code.files, found.code.trusted) == ((str(code),), False)


def test_trust_ends_when_the_file_or_the_code_it_names_changes(user: User) -> None:
    code = user.workspace / "mine.py"
    code.write_text("")
    user.project_file.write_text('tool_files = ["mine.py"]\n')

    def trust() -> None:
        found = user.load()
        assert found.code is not None
        TrustedFolders(user.home / ".local/state/toolreeve").add(user.workspace, found.code.digest)

    trust()
    assert user.load().settings.tool_files == (str(code),)
    code.write_text("import os\n")
    assert user.load().settings.tool_files == ()
    trust()
    assert user.load().settings.tool_files == (str(code),)
    user.project_file.write_text('tool_files = ["mine.py", "other.py"]\n')
    assert user.load().settings.tool_files == ()


def test_trust_in_one_folder_says_nothing_about_a_copy_of_it(user: User) -> None:
    user.project_file.write_text('tool_files = ["mine.py"]\n')
    found = user.load()
    assert found.code is not None
    TrustedFolders(user.home / ".local/state/toolreeve").add(user.workspace, found.code.digest)
    copy = user.workspace / "copy"
    copy.mkdir()
    (copy / "toolreeve.toml").write_text('tool_files = ["mine.py"]\n')

    assert user.load({"workspace.dir": copy}).settings.tool_files == ()


def test_tools_come_from_python_and_yaml_files_and_nothing_else(user: User) -> None:
    with pytest.raises(ConfigErrors, match=r"neither a Python nor a YAML file"):
        user.load(TOOLREEVE_TOOLS="tools.json")


@pytest.mark.parametrize("name", ["TOOLREEVE_TOOLS", "A2A_TOOLS_CONFIG", "TOOLREEVE_TOOL_FILES"])
def test_tool_files_are_a_path_list_under_any_of_their_names(user: User, name: str) -> None:
    found = user.load({}, **{name: "tools.yaml:/more/tools.yml"})

    assert found.settings.tool_files == (str(user.workspace / "tools.yaml"), "/more/tools.yml")


@pytest.mark.parametrize("name", ["TOOLREEVE_ERROR_PROFILE", "A2A_ERROR_PROFILE"])
def test_the_error_profile_is_honoured_under_both_names(user: User, name: str) -> None:
    assert user.load({}, **{name: "extended-json"}).settings.error_profile == "extended-json"
