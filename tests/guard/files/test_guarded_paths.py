"""File tools and the table of what the host obeys."""

from pathlib import Path

import pytest

from tests.core.test_guarded_paths import OBEYED, ORDINARY
from tests.guard.workspace import CALL, GuardedWorkspace, run
from toolreeve.core.errors import ErrorCode, ToolError

JUDGED = {".gitattributes", "sub/.gitattributes", ".gitmodules", ".tool-versions"}


@pytest.mark.parametrize("path", [path for path in OBEYED if path not in JUDGED])
def test_what_the_host_obeys_is_not_made_changed_deleted_or_moved(guarded: GuardedWorkspace, path: str) -> None:
    (guarded.root / "mine").write_text("x")

    assert guarded.write_refusal(path) is ErrorCode.PATH_FORBIDDEN
    with pytest.raises(ToolError, match=r"workspace\.sensitive_allow|controls the runtime"):
        run(guarded.files.move(CALL, "mine", path))
    there = guarded.root / path
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("x")
    for work in (
        guarded.files.write(CALL, path, b""),
        guarded.files.delete(CALL, path),
        guarded.files.move(CALL, path, "to"),
    ):
        with pytest.raises(ToolError) as caught:
            run(work)
        assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert there.read_text() == "x"


@pytest.mark.parametrize("path", ORDINARY)
def test_what_a_project_is_made_of_is_written(guarded: GuardedWorkspace, path: str) -> None:
    run(guarded.files.write(CALL, path, b"x"))

    assert (guarded.root / path).read_bytes() == b"x"


def test_a_guarded_path_is_refused_through_links(guarded: GuardedWorkspace) -> None:
    (guarded.root / ".vscode").mkdir()
    (guarded.root / "editor").symlink_to(".vscode")
    (guarded.root / "hooks").symlink_to(".git/hooks")
    (guarded.root / ".git/hooks").mkdir(parents=True)
    (guarded.root / "config").symlink_to(".git/config")

    for path in ("editor/tasks.json", "hooks/pre-commit", "config", "docs/../.vscode/tasks.json"):
        assert guarded.write_refusal(path) is ErrorCode.PATH_FORBIDDEN


def test_what_the_configuration_names_may_be_changed(guarded: GuardedWorkspace) -> None:
    files = guarded.workspace(sensitive_allow=[".github", "*.code-workspace"])

    run(files.write(CALL, ".github/workflows/ci.yml", b"x"))
    run(files.write(CALL, "app.code-workspace", b"x"))
    with pytest.raises(ToolError, match=r"VS Code obeys it; a change is refused unless workspace\.sensitive_allow"):
        run(files.write(CALL, ".vscode/tasks.json", b"x"))


def test_the_environment_that_the_runtime_runs_from_is_not_changed(guarded: GuardedWorkspace) -> None:
    packages = guarded.root / ".venv/lib"
    packages.mkdir(parents=True)
    files = guarded.workspace(environment=[str(guarded.root / ".venv")], sensitive_allow=[".venv"])

    for path in (".venv/lib/x.pth", ".venv/bin/python", ".venv"):
        with pytest.raises(ToolError, match="controls the runtime"):
            run(files.write(CALL, path, b"import os"))
    with pytest.raises(ToolError, match="controls the runtime"):
        run(files.move(CALL, ".venv", "elsewhere"))


def test_in_a_home_secrets_are_not_read_and_start_up_files_not_changed(guarded: GuardedWorkspace) -> None:
    files = guarded.workspace(homes=[str(guarded.root)])
    for path in (".config/toolreeve/secrets.toml", ".config/gh/hosts.yml", ".config/chromium/x", "p/.env", ".ssh/x"):
        there = guarded.root / path
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text("secret")
        with pytest.raises(ToolError, match="may hold secrets"):
            files.read(path, 10)
    for path in (".bashrc", ".config/fish/config.fish", ".local/bin/ls", ".gitconfig", ".config/autostart/x.desktop"):
        with pytest.raises(ToolError, match=r"obeys it|are found there"):
            run(files.write(CALL, path, b"x"))
    found = {entry.path for entry in files.walk(".", hidden=True) if entry.is_file}
    assert not any("secret" in (guarded.root / path).read_text() for path in found)


def test_attributes_modules_and_versions_are_judged_by_what_they_say(guarded: GuardedWorkspace) -> None:
    evil, fine = b"*.x filter=evil\n", b"*.py diff=python\n"
    run(guarded.files.write(CALL, ".gitattributes", fine))
    run(guarded.files.write(CALL, ".gitmodules", b'[submodule "s"]\n\tpath = s\n\turl = https://example.org/s\n'))

    run(guarded.files.write(CALL, ".tool-versions", b"nodejs 20.1\n"))
    (guarded.root / "evil").write_bytes(evil)
    for work in (
        guarded.files.write(CALL, ".gitattributes", evil),
        guarded.files.write(CALL, ".gitattributes", evil, append=True),
        guarded.files.write(CALL, "sub/.gitattributes", evil),
        guarded.files.move(CALL, "evil", ".gitattributes", overwrite=True),
        guarded.files.link(CALL, "sub2/.gitattributes", "../evil"),
        guarded.files.write(CALL, ".gitmodules", b'[submodule "s"]\n\tupdate = !id\n'),
        guarded.files.write(CALL, ".tool-versions", b"nodejs path:evil\n"),
    ):
        with pytest.raises(ToolError) as caught:
            run(work)
        assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert (guarded.root / ".gitattributes").read_bytes() == fine


def test_no_repository_is_made_under_another_name(guarded: GuardedWorkspace) -> None:
    run(guarded.files.write(CALL, "r/config", b"[core]\n\tfsmonitor = id\n"))
    run(guarded.files.write(CALL, "r/objects/x", b""))

    with pytest.raises(ToolError, match="as part of a repository"):
        run(guarded.files.write(CALL, "r/HEAD", b"ref: refs/heads/main\n"))
    (guarded.root / "b/objects").mkdir(parents=True)
    (guarded.root / "b/HEAD").write_text("ref: refs/heads/main\n")
    for path in ("b/config", "b/hooks/post-checkout", "b/commondir", "b/info/attributes"):
        assert guarded.write_refusal(path) is ErrorCode.PATH_FORBIDDEN


@pytest.mark.parametrize(("source", "to"), [("fake", ".git/modules/x"), ("fake", ".vscode"), ("a", "toolreeve.toml")])
def test_a_directory_cannot_be_moved_to_where_it_is_obeyed(guarded: GuardedWorkspace, source: str, to: str) -> None:
    (guarded.root / "fake/hooks").mkdir(parents=True)
    (guarded.root / "fake/config").write_text("x")
    (guarded.root / "a").mkdir()

    with pytest.raises(ToolError) as caught:
        run(guarded.files.move(CALL, source, to))

    assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert Path(guarded.root / source).exists()
