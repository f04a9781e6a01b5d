"""Detours to the host: git references, links in repositories, locked directories, secret paths."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.integrity.test_watch import shell
from tests.sandbox.runner import WHO, Runner

EVIL = r'printf "[core]\n\tfsmonitor = \"touch $PWD/ESCAPED; false\"\n"'
RUNS = r'printf "#!/bin/sh\ntouch $PWD/ESCAPED; cat\n"'
LEADING = {
    "an include": ("git config include.path ../.shared", f"{EVIL} > .shared"),
    "an include of an include": (
        "git config include.path ../.shared; git config -f .shared include.path sub/more",
        f"mkdir -p sub; {EVIL} > sub/more",
    ),
    "a conditional include": ("git config 'includeIf.gitdir:**.path' ../team/git", f"mkdir -p team; {EVIL} > team/git"),
    "hooks elsewhere": (
        "git config core.hooksPath tools/hooks",
        f"mkdir -p tools/hooks; {RUNS} > tools/hooks/post-checkout; chmod +x tools/hooks/*",
    ),
    "a program of fsmonitor": (
        "git config core.fsmonitor tools/fs",
        f"mkdir -p tools; {RUNS} > tools/fs; chmod +x tools/fs",
    ),
    "a filter by its interpreter": (
        "git config filter.x.clean 'sh tools/clean.sh %f'; echo '* filter=x' > .gitattributes",
        f"mkdir -p tools; {RUNS} > tools/clean.sh",
    ),
    "attributes elsewhere": (
        "git config core.attributesFile attributes.txt; git config filter.x.clean 'touch ESCAPED; cat'",
        "echo '* filter=x' > attributes.txt",
    ),
}  # fmt: skip
STANDS = {
    "an include": "echo > .shared",
    "an include of an include": "mkdir -p sub; echo > sub/more",
    "a conditional include": "mkdir -p team; echo > team/git",
    "hooks elsewhere": "mkdir -p tools/hooks; echo > tools/hooks/post-checkout; chmod +x tools/hooks/*",
    "a program of fsmonitor": "mkdir -p tools; printf '#!/bin/sh\nfalse\n' > tools/fs; chmod +x tools/fs",
    "a filter by its interpreter": "mkdir -p tools; echo cat > tools/clean.sh",
    "attributes elsewhere": "echo > attributes.txt",
}
WRITTEN_BY_GIT = """
COMMIT_EDITMSG logs/HEAD ORIG_HEAD FETCH_HEAD index index.lock config.lock packed-refs MERGE_MSG logs/refs/heads/master
logs/refs/heads/x.key refs/heads/other objects/info/commit-graph
""".split()
OBEYED_SECRETS = """
.ssh/authorized_keys .ssh/rc .ssh/config .gnupg/gpg-agent.conf .aws/config .kube/config .docker/config.json .netrc
.npmrc .config/gh/config.yml .m2/settings.xml .gradle/gradle.properties .terraformrc .my.cnf .envrc .msmtprc
.config/rclone/rclone.conf .mozilla/user.js .password-store/.extensions/x .gradle/init.d/x.gradle
""".split()


def host(work: Path, *, folders: str = ".") -> bool:
    """What a person does next, with their own git. Whether anything of the plant ran."""
    everything = f"""
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' GIT_CONFIG_GLOBAL=/dev/null
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        for d in {folders}; do [ -d $d ] && (cd $d; git status; echo 2 >> f; git add -A; git commit -m 2; git fetch .
            git checkout -q -B other; git merge -m 3 HEAD; git reset --hard; git gc) ; done; true"""
    subprocess.run(["bash", "-c", everything], cwd=work, check=True, capture_output=True)
    return bool(list(work.rglob("ESCAPED")))


@pytest.fixture(params=WHO)
def who(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def work() -> Iterator[Path]:
    folder = open_folder()
    (folder / "work").mkdir()
    shell(folder / "work", "git init -q -b master; echo 1 > f; git add f; git commit -qm 1")
    (folder / "state").mkdir()
    (folder / "state").chmod(0o777)
    yield folder / "work"
    shutil.rmtree(folder)


def attack(who: str, work: Path, *scripts: str, **options: bool) -> list[str]:
    """Run these, and tell what was quarantined."""
    runner = Runner(who, work, quarantine=str(work.parent / "state" / "quarantine"), **options)
    notices: list[str] = []
    try:
        for script in scripts:
            ended = runner.bash(script, environment={"GIT_CONFIG_GLOBAL": "/dev/null"})
            assert ended.get("sandbox") == "full", ended
            notices += ended["quarantined"]
    finally:
        runner.close()
    return notices


@pytest.mark.parametrize("existing", [False, True], ids=["missing", "existing"])
@pytest.mark.parametrize("way", LEADING)
def test_what_settings_refer_to_is_guarded(who: str, work: Path, way: str, *, existing: bool) -> None:
    setting, plant = LEADING[way]
    shell(work, setting)
    if existing:
        shell(work, STANDS[way])

    attack(who, work, f"({plant}); true", f"({plant}); true")

    assert not host(work)


@pytest.mark.parametrize("way", LEADING)
def test_what_settings_refer_to_would_run(work: Path, way: str) -> None:
    for script in LEADING[way]:
        shell(work, script)

    assert host(work)


def test_what_a_person_makes_settings_refer_to_later_is_guarded_too(who: str, work: Path) -> None:
    shell(work, "mkdir tools; echo > tools/fs; chmod +x tools/fs")
    runner = Runner(who, work, quarantine=str(work.parent / "state" / "quarantine"))
    try:
        assert runner.bash("echo '# mine' >> tools/fs")["exit_code"] == 0
        settings = work / ".git/config"
        settings.write_text(f"{settings.read_text()}[core]\n\tfsmonitor = tools/fs\n")

        assert runner.bash(f"{RUNS} > tools/fs")["exit_code"] != 0
    finally:
        runner.close()
    assert not host(work)


@pytest.mark.parametrize("name", WRITTEN_BY_GIT)
def test_no_link_in_a_repository_leads_the_host_out_of_it(who: str, work: Path, name: str) -> None:
    victim = work.parent / "state" / "victim"
    victim.write_text("precious")
    victim.chmod(0o666)

    notices = attack(who, work, f"cd .git; mkdir -p $(dirname {name}); ln -sf {victim} {name}; ls -l {name}")

    assert any(f".git/{name}" in each for each in notices), notices
    host(work)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["objects", "refs/heads", "logs", "objects/pack", "rebase-apply"])
def test_no_directory_of_a_repository_is_made_a_link(who: str, work: Path, name: str) -> None:
    elsewhere = work.parent / "state" / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)

    attack(who, work, f"cd .git; rm -rf {name}; ln -s {elsewhere} {name}")

    host(work)
    assert list(elsewhere.iterdir()) == []


def test_no_link_in_a_repository_leads_to_what_git_obeys_there(who: str, work: Path) -> None:
    notices = attack(who, work, "ln -sf hooks/post-checkout .git/COMMIT_EDITMSG; ln -s config .git/MERGE_MSG")

    assert len(notices) == 2


def test_a_link_that_a_person_made_in_a_repository_is_restored(who: str, work: Path) -> None:
    shell(work, "mv .git/logs store; ln -s ../store .git/logs")

    notices = attack(who, work, "git commit -q --allow-empty -m 2 || exit 9", "ln -sfn /tmp .git/logs")

    assert len(notices) == 1
    assert (work / ".git/logs").readlink() == Path("../store")


def test_a_hard_link_in_a_repository_leads_to_nothing_that_commands_could_not_write(who: str, work: Path) -> None:
    outside = work.parent / "state" / "victim"
    outside.write_text("precious")
    outside.chmod(0o666)
    (work / ".mcp.json").write_text("{}")

    attack(who, work, f"for f in {outside} .mcp.json .git/config f; do ln -f $f .git/COMMIT_EDITMSG; done; true")

    host(work)
    assert outside.read_text() == "precious"
    assert (work / ".mcp.json").read_text() == "{}"
    assert not (work / ".git/config").samefile(work / ".git/COMMIT_EDITMSG")


@pytest.mark.parametrize("path", [".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json"])
def test_a_guarded_file_is_not_written_by_another_name_that_the_host_gave_it(who: str, work: Path, path: str) -> None:
    (work / path).parent.mkdir(exist_ok=True)
    (work / path).touch()
    before = (work / path).read_bytes()
    (work / "other-name").hardlink_to(work / path)

    notices = attack(who, work, "printf '[core]\n\tfsmonitor = touch ESCAPED; false\n' >> other-name")

    assert [path in each for each in notices] == [True]
    assert not (work / path).exists() or (work / path).read_bytes() == before


LOCKED = {
    "at once": ("git init -q box/in; {evil} > box/in/.git/config; chmod {mode} box/in box", "chmod 755 box box/in"),
    "inside": ("git init -q box/in; {evil} > box/in/.git/config; chmod {mode} box/in/.git", "chmod 755 box/in/.git"),
    "and never opened": ("git init -q box/in; {evil} > box/in/.git/config; chmod {mode} box", "true"),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["000", "300", "600"])
@pytest.mark.parametrize("way", LOCKED)
def test_a_directory_that_a_command_locked_is_inspected(who: str, work: Path, way: str, mode: str) -> None:
    lock, unlock = LOCKED[way]

    notices = attack(who, work, lock.format(evil=EVIL, mode=mode), unlock)

    shell(work, "chmod -R u+rwX box")
    assert not host(work, folders="box/in"), notices


def test_a_locked_directory_stays_locked(who: str, work: Path) -> None:
    notices = attack(who, work, "mkdir -p box/in; chmod 000 box/in; chmod 311 box; chmod 000 .git/logs", "true")

    assert notices == []
    assert ((work / "box").stat().st_mode & 0o777) == 0o311
    assert ((work / "box/in").stat().st_mode & 0o777) == 0


def test_what_a_person_locked_is_guarded_when_a_command_opens_it(who: str, work: Path) -> None:
    shell(work, "git init -q box; chmod 000 box")

    attack(who, work, f"chmod 755 box; {EVIL} > box/.git/config; true")

    assert not host(work, folders="box")


@pytest.mark.parametrize("name", OBEYED_SECRETS)
def test_a_secret_path_that_is_also_obeyed_is_not_left_in_a_home(who: str, work: Path, name: str) -> None:
    shell(work, "rm -rf .git")

    notices = attack(who, work, f"mkdir -p $(dirname {name}); echo x >> {name}", "true", home=True)

    assert len(notices) == 1
    assert not (work / name).exists()
