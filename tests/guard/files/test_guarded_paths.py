"""File tools and the table of what the host obeys."""

from pathlib import Path

import pytest

from tests.core.test_guarded_paths import OBEYED, ORDINARY
from tests.guard.place import CALL, Place, run
from toolreeve.core.errors import ErrorCode, ToolError

JUDGED = {".gitattributes", "sub/.gitattributes", ".gitmodules", ".tool-versions"}


@pytest.mark.parametrize("path", [path for path in OBEYED if path not in JUDGED])
def test_what_the_host_obeys_is_not_made_changed_deleted_or_moved(place: Place, path: str) -> None:
    (place.root / "mine").write_text("x")

    assert place.write_refusal(path) is ErrorCode.PATH_FORBIDDEN
    with pytest.raises(ToolError, match=r"workspace\.sensitive_allow|controls the runtime"):
        run(place.files.move(CALL, "mine", path))
    there = place.root / path
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("x")
    for work in (
        place.files.write(CALL, path, b""),
        place.files.delete(CALL, path),
        place.files.move(CALL, path, "to"),
    ):
        with pytest.raises(ToolError) as caught:
            run(work)
        assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert there.read_text() == "x"


@pytest.mark.parametrize("path", ORDINARY)
def test_what_a_project_is_made_of_is_written(place: Place, path: str) -> None:
    run(place.files.write(CALL, path, b"x"))

    assert (place.root / path).read_bytes() == b"x"


def test_a_guarded_path_is_refused_through_links(place: Place) -> None:
    (place.root / ".vscode").mkdir()
    (place.root / "editor").symlink_to(".vscode")
    (place.root / "hooks").symlink_to(".git/hooks")
    (place.root / ".git/hooks").mkdir(parents=True)
    (place.root / "config").symlink_to(".git/config")

    for path in ("editor/tasks.json", "hooks/pre-commit", "config", "docs/../.vscode/tasks.json"):
        assert place.write_refusal(path) is ErrorCode.PATH_FORBIDDEN


def test_what_the_configuration_names_may_be_changed(place: Place) -> None:
    files = place.workspace(sensitive_allow=[".github", "*.code-workspace"])

    run(files.write(CALL, ".github/workflows/ci.yml", b"x"))
    run(files.write(CALL, "app.code-workspace", b"x"))
    with pytest.raises(ToolError, match=r"VS Code obeys it; a change is refused unless workspace\.sensitive_allow"):
        run(files.write(CALL, ".vscode/tasks.json", b"x"))


def test_the_environment_that_the_runtime_runs_from_is_not_changed(place: Place) -> None:
    packages = place.root / ".venv/lib"
    packages.mkdir(parents=True)
    files = place.workspace(environment=[str(place.root / ".venv")], sensitive_allow=[".venv"])

    for path in (".venv/lib/x.pth", ".venv/bin/python", ".venv"):
        with pytest.raises(ToolError, match="controls the runtime"):
            run(files.write(CALL, path, b"import os"))
    with pytest.raises(ToolError, match="controls the runtime"):
        run(files.move(CALL, ".venv", "elsewhere"))


def test_in_a_home_secrets_are_not_read_and_start_up_files_not_changed(place: Place) -> None:
    files = place.workspace(homes=[str(place.root)])
    for path in (".config/toolreeve/secrets.toml", ".config/gh/hosts.yml", ".config/chromium/x", "p/.env", ".ssh/x"):
        there = place.root / path
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text("secret")
        with pytest.raises(ToolError, match="may hold secrets"):
            files.read(path, 10)
    for path in (".bashrc", ".config/fish/config.fish", ".local/bin/ls", ".gitconfig", ".config/autostart/x.desktop"):
        with pytest.raises(ToolError, match=r"obeys it|are found there"):
            run(files.write(CALL, path, b"x"))
    found = {entry.path for entry in files.walk(".", hidden=True) if entry.is_file}
    assert not any("secret" in (place.root / path).read_text() for path in found)


def test_attributes_modules_and_versions_are_judged_by_what_they_say(place: Place) -> None:
    evil, fine = b"*.x filter=evil\n", b"*.py diff=python\n"
    run(place.files.write(CALL, ".gitattributes", fine))
    run(place.files.write(CALL, ".gitmodules", b'[submodule "s"]\n\tpath = s\n\turl = https://example.org/s\n'))

    run(place.files.write(CALL, ".tool-versions", b"nodejs 20.1\n"))
    (place.root / "evil").write_bytes(evil)
    for work in (
        place.files.write(CALL, ".gitattributes", evil),
        place.files.write(CALL, ".gitattributes", evil, append=True),
        place.files.write(CALL, "sub/.gitattributes", evil),
        place.files.move(CALL, "evil", ".gitattributes", overwrite=True),
        place.files.link(CALL, "sub2/.gitattributes", "../evil"),
        place.files.write(CALL, ".gitmodules", b'[submodule "s"]\n\tupdate = !id\n'),
        place.files.write(CALL, ".tool-versions", b"nodejs path:evil\n"),
    ):
        with pytest.raises(ToolError) as caught:
            run(work)
        assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert (place.root / ".gitattributes").read_bytes() == fine


def test_no_repository_is_made_under_another_name(place: Place) -> None:
    run(place.files.write(CALL, "r/config", b"[core]\n\tfsmonitor = id\n"))
    run(place.files.write(CALL, "r/objects/x", b""))

    with pytest.raises(ToolError, match="as part of a repository"):
        run(place.files.write(CALL, "r/HEAD", b"ref: refs/heads/main\n"))
    (place.root / "b/objects").mkdir(parents=True)
    (place.root / "b/HEAD").write_text("ref: refs/heads/main\n")
    for path in ("b/config", "b/hooks/post-checkout", "b/commondir", "b/info/attributes"):
        assert place.write_refusal(path) is ErrorCode.PATH_FORBIDDEN


@pytest.mark.parametrize(("source", "to"), [("fake", ".git/modules/x"), ("fake", ".vscode"), ("a", "toolreeve.toml")])
def test_a_directory_cannot_be_moved_to_where_it_is_obeyed(place: Place, source: str, to: str) -> None:
    (place.root / "fake/hooks").mkdir(parents=True)
    (place.root / "fake/config").write_text("x")
    (place.root / "a").mkdir()

    with pytest.raises(ToolError) as caught:
        run(place.files.move(CALL, source, to))

    assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert Path(place.root / source).exists()
