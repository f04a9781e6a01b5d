"""Commits of real layers: equal to a plain run, refused on conflict, finished or reverted after a kill."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trial.conftest import Project
from toolreeve.core.errors import ToolError
from toolreeve.trial.commits import Commits
from toolreeve.trial.harvest import Harvest
from toolreeve.trial.journal import CommitPhase


@pytest.fixture
def commits(tmp_path: Path) -> Commits:
    return Commits(tmp_path / "state")


def commit(commits: Commits, harvest: Harvest, chosen: tuple[str, ...] | None = None) -> str:
    prepared = commits.prepare(harvest, chosen)
    prepared.apply()
    return prepared.plan.id


def rounds(*arguments: str) -> dict[str, int]:
    ended = subprocess.run([sys.executable, "-m", "tests.trial.rounds", *arguments], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    outcomes: dict[str, int] = json.loads(ended.stdout)
    return outcomes


@pytest.mark.parametrize("who", [[], ["--user"]], ids=["root", "user"])
def test_a_commit_equals_a_plain_run_and_its_undo_the_tree_before(who: list[str]) -> None:
    assert rounds("0", "60", *who) == {"committed": 60}


@pytest.mark.parametrize("who", [[], ["--user"]], ids=["root", "user"])
def test_a_commit_that_is_killed_anywhere_is_finished_or_reverted(who: list[str]) -> None:
    """Each round checks the whole tree, some after an edit by somebody else before recovery."""
    outcomes = rounds("1000", "1120", *who, "--kill")

    assert sum(outcomes.values()) == 120
    assert {"dropped", "finished", "reverted", "undone"} <= outcomes.keys()


def test_times_modes_attributes_and_holes_are_kept(project: Project, commits: Commits) -> None:
    harvest = project.harvest(
        """
        echo x > new; touch -d '2001-02-03 04:05:06.789' new; chmod 750 new; truncate -s 50M sparse
        mkdir -m 700 dir; touch -d 2002-01-01 dir
        python3 -c 'import os; os.setxattr("new", "user.note", b"y")'
        """
    )

    commit(commits, harvest)

    new = project.root / "new"
    assert (new.stat().st_mtime_ns, new.stat().st_mode & 0o777) == (981173106789000000, 0o750)
    assert os.getxattr(new, "user.note") == b"y"
    assert (project.root / "sparse").stat().st_blocks == 0
    assert ((project.root / "dir").stat().st_mtime, (project.root / "dir").stat().st_mode & 0o777) == (
        1009843200,
        0o700,
    )


def test_what_the_sandbox_made_belongs_to_the_owner_of_the_workspace(project: Project, commits: Commits) -> None:
    os.chown(project.root, 1234, 1234)
    harvest = project.harvest("echo > new; mkdir -p dir/sub; ln -s x link2; chown -hR 1234:1234 new dir link2")

    commit(commits, harvest)

    owners = {(project.root / name).lstat().st_uid for name in ("new", "dir", "dir/sub", "link2")}
    assert owners == {1234}


@pytest.mark.parametrize(
    "edit",
    ["echo theirs >> b", "chmod 700 b", "rm b", "rm b; mkdir b", "touch b", "mv b c", "ln -sf /etc/passwd b"],
)
def test_a_file_that_somebody_edits_while_the_person_thinks_is_a_conflict(
    project: Project, commits: Commits, edit: str
) -> None:
    harvest = project.harvest("echo mine >> a; echo mine >> b; echo > new")
    subprocess.run(["bash", "-c", edit], cwd=project.root, check=True)
    before = project.listing()

    with pytest.raises(ToolError, match="'b' was changed meanwhile by another program; nothing was committed"):
        commit(commits, harvest)

    assert project.listing() == before
    assert list(commits.journal.directory.iterdir()) == []


@pytest.mark.parametrize(
    "edit",
    [
        "echo theirs >> x",
        "echo > stranger",
        "rm y",
        "touch -r x t; tr a-z A-Z < x > u; cat u > x; touch -r t x; rm t u",
    ],
)
def test_an_edit_in_a_directory_that_goes_is_a_conflict(project: Project, commits: Commits, edit: str) -> None:
    harvest = project.harvest("echo > new; rm -r src/old")
    subprocess.run(["bash", "-c", edit], cwd=project.root / "src/old", check=True)
    before = project.listing()

    with pytest.raises(ToolError, match="'src/old' has entries that were changed meanwhile"):
        commit(commits, harvest)

    assert project.listing() == before


def test_a_new_file_that_somebody_made_meanwhile_is_not_replaced(project: Project, commits: Commits) -> None:
    harvest = project.harvest("echo mine > new")
    project.write("new", "theirs")

    with pytest.raises(ToolError, match="'new'"):
        commit(commits, harvest)

    assert (project.root / "new").read_text() == "theirs"


def test_a_file_that_is_open_for_writing_elsewhere_is_a_conflict(project: Project, commits: Commits) -> None:
    harvest = project.harvest("echo mine >> a")

    with (project.root / "a").open("a"), pytest.raises(ToolError, match="is open for writing in another program"):
        commit(commits, harvest)

    assert (project.root / "a").read_text() == "a\n"


def test_a_link_that_is_swapped_in_before_the_commit_is_not_followed(
    project: Project, commits: Commits, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "app.py").write_text("theirs")
    harvest = project.harvest("echo mine > src/app.py; echo > src/new")
    (project.root / "src").rename(project.root / "away")
    (project.root / "src").symlink_to(victim)

    with pytest.raises(ToolError, match="nothing was committed"):
        commit(commits, harvest)

    assert [path.name for path in victim.iterdir()] == ["app.py"]
    assert (victim / "app.py").read_text() == "theirs"


def test_a_part_of_the_changes_is_committed_with_what_it_needs(project: Project, commits: Commits) -> None:
    harvest = project.harvest("echo >> a; echo >> b; mkdir -p new/sub; echo > new/sub/x; echo > new/y; ln new/y other")

    commit(commits, harvest, ("new/sub/x", "other"))

    made = sorted(set(project.listing()) - {"a", "b", "link", "src", "src/app.py", "src/old", "src/old/x", "src/old/y"})
    assert made == ["new", "new/sub", "new/sub/x", "new/y", "other"]
    assert (project.root / "a").read_text() == "a\n"
    assert (project.root / "other").stat().st_ino == (project.root / "new/y").stat().st_ino


def test_the_parts_of_a_replaced_directory_go_together(project: Project, commits: Commits) -> None:
    harvest = project.harvest("rm -r src/old; mkdir src/old; echo 1 > src/old/x; echo 2 > src/old/z; echo >> a")

    assert [each.path for each in harvest.choose(["src/old/z"])] == ["src/old", "src/old/x", "src/old/z"]


def test_scratch_is_not_committed_unless_it_is_chosen(project: Project, commits: Commits) -> None:
    script = "mkdir -p pkg/__pycache__; echo forged > pkg/__pycache__/m.pyc; echo > pkg/m.py"
    harvest = project.harvest(script).with_scratch(["pkg/__pycache__"])

    commit(commits, harvest)

    assert (project.root / "pkg/m.py").exists()
    assert not (project.root / "pkg/__pycache__").exists()


def test_a_refused_entry_stops_the_whole_commit(project: Project, commits: Commits) -> None:
    harvest = project.harvest("echo > new; mkfifo fifo")
    before = project.listing()

    with pytest.raises(ToolError, match="'fifo': is a FIFO; nothing was committed"):
        commit(commits, harvest)

    assert project.listing() == before


def test_two_commits_do_not_run_at_once_in_a_tree(
    project: Project, commits: Commits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolreeve.trial.commits.LOCK_SECONDS", 0.05)
    first = commits.prepare(project.harvest("echo >> a"))
    second = project.harvest("echo >> b")

    with pytest.raises(ToolError, match="another commit has been running"):
        Commits(tmp_path / "another-state").prepare(second)

    first.apply()
    assert (project.root / "a").read_text() == "a\n\n"


def test_without_a_rename_to_the_state_directory_the_stage_is_in_a_protected_one(project: Project) -> None:
    commits = Commits(Path("/dev/shm") / f"toolreeve-test-{os.getpid()}")
    harvest = project.harvest("echo >> a; echo > new")
    before = project.listing()

    id_ = commit(commits, harvest)
    commits.toggle(id_, undo=True)

    own = project.root / ".toolreeve/commits"
    assert (own / ".gitignore").read_text() == "*\n"
    assert {path: found for path, found in project.listing().items() if not path.startswith(".toolreeve")} == before
    commits.prune(())
    assert (own / id_).is_dir()  # still young
    Commits(commits.journal.directory.parent, now=lambda: 9e9).prune(())
    assert sorted(path.name for path in own.iterdir()) == [".gitignore"]
    commits.journal.directory.rmdir()
    commits.journal.directory.parent.rmdir()


def test_a_journal_in_the_workspace_is_not_obeyed(project: Project, commits: Commits) -> None:
    """A repository may come with one."""
    victim = commits.prepare(project.harvest("echo > new"))
    forged = project.root / ".toolreeve/commits"
    forged.mkdir(parents=True)
    for path in commits.journal.directory.glob("*.new"):
        (forged / path.with_suffix(".applying").name).write_bytes(path.read_bytes())
    victim.drop()

    assert (commits.recover(), commits.journal.phases()) == ([], {})


def test_the_next_trial_sees_a_commit_and_not_a_conflict(project: Project, commits: Commits) -> None:
    for number in range(3):
        harvest = project.harvest(f"echo {number} >> a; mkdir -p d; echo {number} >> d/log")
        commit(commits, harvest)

    assert (project.root / "a").read_text() == "a\n0\n1\n2\n"


def test_a_commit_can_be_undone_and_made_again(project: Project, commits: Commits) -> None:
    before = project.listing()
    id_ = commit(commits, project.harvest("echo >> a; rm -r src; mkdir new; echo > new/x; chmod 700 b; ln -sf b link"))
    after = project.listing()

    commits.toggle(id_, undo=True)
    undone = project.listing()
    commits.toggle(id_, undo=False)

    assert (undone, project.listing()) == (before, after)
    assert commits.journal.phase(id_) is CommitPhase.DONE


def test_a_commit_that_is_killed_before_it_was_noted_for_undo_is_dropped(project: Project, commits: Commits) -> None:
    before = project.listing()
    pid = os.fork()
    if pid == 0:
        commits.prepare(project.harvest("echo >> a; echo > new"))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)

    assert [each.outcome for each in commits.recover()] == ["dropped"]
    assert project.listing() == before
    assert list(commits.journal.directory.iterdir()) == []
