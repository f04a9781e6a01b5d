from pathlib import Path

import pytest

from tests.guard.workspace import CALL, GuardedWorkspace, names, run
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.secrets.paths import find_secret
from toolreeve.guard.files.system_directories import find_system
from toolreeve.guard.files.workspace import WorkspaceFiles


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".ENV",
        ".env.local",
        ".env.production",
        "deploy/.env",
        "prod.env",
        ".envrc",
        ".ssh/config",
        "home/.ssh/known_hosts",
        "id_rsa",
        "keys/id_ed25519",
        "id_rsa_backup",
        "tls/server.key",
        "tls/privkey.pem",
        "cert.p12",
        ".aws/credentials",
        ".netrc",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".gnupg/secring.gpg",
        ".kube/config",
        ".docker/config.json",
        ".config/gcloud/credentials.db",
        ".local/share/keyrings/login.keyring",
    ],
)
def test_a_place_that_may_hold_secrets_is_known(path: str) -> None:
    assert find_secret(path.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        ".env.sample",
        ".env.template",
        "example.env",
        "env",
        "venv/bin/python",
        ".venv/pyvenv.cfg",
        "environment.py",
        "id_rsa.pub",
        "cert.pem",
        "fullchain.pem",
        "src/keys.py",
        "keyboard.md",
        ".config/nvim/init.lua",
        "ssh/config",
        "aws/credentials.py",
        ".github/workflows/ci.yml",
        "docker/config.json",
    ],
)
def test_an_ordinary_place_is_not_taken_for_a_secret(path: str) -> None:
    assert find_secret(path.split("/")) is None


def test_system_places_count_only_where_the_root_is_above_them() -> None:
    assert find_system("/etc/shadow", "/")
    assert find_system("/etc", "/")
    assert find_system("/proc/self/environ", "/")
    assert find_system("/etcetera/x", "/") is None
    assert find_system("/root/project/x", "/root/project") is None
    assert find_system("/root/project/x", "/root") is None
    assert find_system("/root/project/x", "/")


class TestInAWorkspace:
    def test_a_secret_is_refused_by_name_and_through_a_link(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / ".env").write_text("TOKEN=1")
        (guarded.root / "innocent.txt").symlink_to(".env")
        (guarded.root / "keys").symlink_to(".ssh")
        (guarded.root / ".ssh").mkdir()
        (guarded.root / ".ssh" / "notes").write_text("x")

        for path in (".env", "docs/../.env", "innocent.txt", "keys/notes", ".ssh/notes"):
            assert guarded.refusal(path) is ErrorCode.PATH_FORBIDDEN
            assert guarded.write_refusal(path) is ErrorCode.PATH_FORBIDDEN

    def test_a_link_named_like_a_secret_is_refused_whatever_it_leads_to(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / ".env").symlink_to("docs/note.txt")

        assert guarded.refusal(".env") is ErrorCode.PATH_FORBIDDEN

    def test_a_secret_that_the_configuration_names_is_allowed(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / ".env").write_text("TOKEN=1")
        (guarded.root / ".env.test").write_text("x")
        files = guarded.workspace(sensitive_allow=[".env.test"])

        assert files.read(".env.test", 10).data == b"x"
        with pytest.raises(ToolError, match="may hold secrets"):
            files.read(".env", 10)

    def test_a_workspace_below_a_home_with_such_places_works(self, tmp_path: Path) -> None:
        root = tmp_path / ".config" / "gh" / ".ssh" / "project"
        root.mkdir(parents=True)
        (root / "a.txt").write_text("a")
        files = WorkspaceFiles(root)

        assert files.read("a.txt", 10).data == b"a"
        files.close()

    def test_the_runtimes_own_files_are_read_but_never_changed(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "toolreeve.toml").write_text("x")

        assert guarded.read("toolreeve.toml") == b"x"
        for path in ("toolreeve.toml", "policy.yaml", ".toolreeve/anything", "./docs/../policy.yaml", "TOOLREEVE.toml"):
            assert guarded.write_refusal(path) is ErrorCode.PATH_FORBIDDEN
        files = guarded.workspace(sensitive_allow=["toolreeve.toml"])
        with pytest.raises(ToolError, match="controls the runtime"):
            run(files.write(CALL, "toolreeve.toml", b""))

    def test_protected_state_is_refused_and_so_is_moving_what_holds_it(self, guarded: GuardedWorkspace) -> None:
        state = guarded.root / "var" / "state"
        state.mkdir(parents=True)
        (state / "db").write_text("x")
        files = guarded.workspace(protected=[str(state)])

        for path in ("var/state/db", "var/state"):
            with pytest.raises(ToolError, match="own state"):
                files.read(path, 10)
        with pytest.raises(ToolError, match="controls the runtime"):
            run(files.move(CALL, "var", "elsewhere"))
        assert [found.path for found in files.walk("var")] == []

    def test_hooks_cannot_be_planted_by_moving_directories_about(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / ".git" / "hooks").mkdir(parents=True)
        (guarded.root / "fake" / "hooks").mkdir(parents=True)
        (guarded.root / "fake" / "hooks" / "pre-commit").write_text("#!/bin/sh")

        for source, destination in (
            (".git", "git"),
            ("fake", ".git"),
            ("fake/hooks", ".git/hooks"),
            (".git/hooks", "h"),
        ):
            with pytest.raises(ToolError) as caught:
                run(guarded.files.move(CALL, source, destination, overwrite=True))
            assert caught.value.code is ErrorCode.PATH_FORBIDDEN
        assert names(guarded.root / ".git") == ["hooks"]

    def test_a_directory_that_holds_a_secret_moves_only_if_it_stays_one(self, guarded: GuardedWorkspace) -> None:
        gh = guarded.root / "home" / ".config" / "gh"
        gh.mkdir(parents=True)
        (gh / "hosts.yml").write_text("token")

        with pytest.raises(ToolError, match="may not be moved"):
            run(guarded.files.move(CALL, "home/.config", "home/config"))
        run(guarded.files.move(CALL, "home", "casa"))

        assert guarded.refusal("casa/.config/gh/hosts.yml") is ErrorCode.PATH_FORBIDDEN

    def test_the_root_of_the_machine_as_workspace_keeps_the_system_closed(self) -> None:
        files = WorkspaceFiles("/")
        for path in (
            "/etc/passwd",
            "etc/hostname",
            "/proc/self/environ",
            "/dev/null",
            "/sys/kernel",
            "proc/self/root/etc/passwd",
        ):
            assert files.explain(path).code == ErrorCode.PATH_FORBIDDEN
        files.close()
