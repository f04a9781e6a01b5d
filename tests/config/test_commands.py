import pytest

from tests.config.conftest import User
from toolreeve.config.trust import TrustedFolders
from toolreeve.core.errors import ConfigErrors
from toolreeve.runtime.processes import command_rules


def test_the_older_names_of_the_variables_are_honoured(user: User) -> None:
    found = user.load(COMMAND_ALLOWLIST="ls,cat", COMMAND_BLOCKLIST='["git push"]', TIMEOUT_COMMAND_DEFAULT="12")
    rules = command_rules(found)

    assert (rules.allow, rules.block, rules.timeout) == (("ls", "cat"), ("git push",), 12.0)


def test_a_project_may_block_programs_and_allow_none(user: User) -> None:
    user.says('[commands]\nblocklist = ["curl"]\n')
    user.project_file.write_text('[commands]\nblocklist = ["wget"]\ntimeout = 5.0\n')
    assert command_rules(user.load()).block == ("curl", "wget")
    assert command_rules(user.load()).timeout == 5.0

    for loose in ('allowlist = ["evil"]', 'network = "host"'):
        user.project_file.write_text(f"[commands]\n{loose}\n")
        with pytest.raises(ConfigErrors, match="a project's file may not set this"):
            user.load()


def test_a_projects_quality_commands_are_ignored_until_the_folder_is_trusted(user: User) -> None:
    user.project_file.write_text('[quality]\ntests = ["make test"]\n')
    found = user.load()

    assert command_rules(found).quality["tests"] == ()
    assert found.code is not None
    assert (found.code.files, found.code.commands, found.code.trusted) == ((), ("make test",), False)

    TrustedFolders(user.home / ".local/state/toolreeve").add(user.workspace, found.code.digest)
    assert command_rules(user.load()).quality["tests"] == ("make test",)

    user.project_file.write_text('[quality]\ntests = ["make evil"]\n')
    assert command_rules(user.load()).quality["tests"] == ()
