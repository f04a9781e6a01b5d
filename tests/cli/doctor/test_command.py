from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from toolreeve.cli.doctor.checks import filesystem_of


def checks(shell: Shell, *args: str) -> dict[str, str]:
    return {check["name"]: check["status"] for check in shell.run("doctor", "--json", *args).json["checks"]}


def test_every_control_is_tried_and_found_active(shell: Shell) -> None:
    printed = shell.run("doctor", "--json")

    found = {check["name"]: check["status"] for check in printed.json["checks"] if check["area"] == "control"}
    assert printed.status == 0
    assert found == dict.fromkeys(
        [
            "paths outside",
            "sensitive files",
            "own state",
            "own settings",
            "writing",
            "sandbox",
            "trials",
            "mode",
            "decisions",
            "budget",
            "redaction",
            "audit",
            "serve limits",
        ],
        "ok",
    )


@pytest.mark.parametrize("target", ["nowhere", "../outside", "folder", "file", ".", "circle"])
def test_doctor_and_calls_agree_on_the_tier_whatever_links_there_are(shell: Shell, target: str) -> None:
    (shell.workspace.parent / "outside").write_text("x")
    (shell.workspace / "folder").mkdir()
    (shell.workspace / "file").write_text("")
    (shell.workspace / "circle").symlink_to(".env")
    for name in (".env", ".github", ".vscode", ".idea", ".git"):
        (shell.workspace / name).symlink_to(target)

    printed = shell.run("doctor", "--json")
    called = shell.run("--mode", "bypass", "--json", "call", "bash", "command=id -u")

    (sandbox,) = [check for check in printed.json["checks"] if check["name"] == "sandbox"]
    assert sandbox["found"].startswith("tier full ")
    assert called.json["meta"]["sandbox"] == "full"
    assert called.json["data"]["stdout"] != "0\n"


def test_every_limit_is_reported_as_enforced_or_not(shell: Shell) -> None:
    printed = shell.run("doctor", "--json")

    said = {check["name"]: check["found"] for check in printed.json["checks"] if check["area"] == "limits"}
    assert {"memory", "processes", "inotify", "temporary files"} <= set(said)
    assert all(found.startswith(("enforced: ", "not enforced: ")) for found in said.values())
    assert said["writes to the workspace"].startswith("not enforced")


def test_a_state_directory_open_to_others_fails_and_can_be_fixed(shell: Shell) -> None:
    state = shell.home / ".local/state/toolreeve"
    state.mkdir(parents=True, mode=0o755)
    state.chmod(0o755)

    assert shell.run("doctor").status == 1
    assert checks(shell)["state"] == "fail"
    assert checks(shell, "--fix")["state"] == "ok"
    assert state.stat().st_mode & 0o777 == 0o700


def test_a_bad_configuration_is_a_failed_check_not_a_crash(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").write_text("[nonsense]\n")

    printed = shell.run("doctor")

    assert printed.status == 1
    assert "toolreeve.toml:1: nonsense: unknown key" in printed.out


def test_untrusted_code_is_reported(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").write_text('tool_files = ["mine.py"]\n')

    out = shell.run("doctor").out

    assert "the folder is not trusted" in out


def test_bypass_and_named_secrets_are_warnings(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLREEVE_WORKSPACE_SENSITIVE_ALLOW", ".env")

    found = checks(shell, "--mode", "bypass")

    assert (found["mode"], found["sensitive files"]) == ("warn", "warn")


def test_writing_turned_off_is_shown_as_refused(shell: Shell) -> None:
    (shell.workspace / "toolreeve.toml").write_text("[workspace]\nallow_write = false\n")

    (writing,) = [check for check in shell.run("doctor", "--json").json["checks"] if check["name"] == "writing"]

    assert [path.name for path in shell.workspace.iterdir()] == ["toolreeve.toml"]
    assert (writing["status"], writing["found"]) == ("ok", "off; a test write was refused")


def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_text(
        f"disk / ext4 rw 0 0\nserver:/x {tmp_path}/net nfs4 rw 0 0\nother {tmp_path}/a\\040b tmpfs rw 0 0\n"
    )

    found = [filesystem_of(tmp_path / name, str(table)) for name in ("net/deep/er", "a b/c", "else")]

    assert found == ["nfs4", "tmpfs", "ext4"]


def test_without_a_sandbox_no_mechanism_is_reported_as_used(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTE_MODE", "none")

    printed = shell.run("doctor").out

    assert "sandbox.mode is none" in printed
    assert "used: " not in printed.replace("not used", "")
