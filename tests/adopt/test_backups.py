import fcntl
import json
from pathlib import Path

import pytest

from toolreeve.adopt.backups import Backups, ChangeOutcome
from toolreeve.adopt.plan import FileChange
from toolreeve.adopt.reversal import BlocksAdded, ServersTaken
from toolreeve.core.errors import ConfigError


def change(path: Path, after: str) -> FileChange:
    return FileChange(path=path, before=path.read_text() if path.exists() else None, after=after)


def done(backups: Backups, changes: list[FileChange]) -> tuple[Path, list[ChangeOutcome]]:
    folder, outcomes = backups.apply(changes)
    assert folder is not None
    return folder, outcomes


@pytest.fixture
def backups(tmp_path: Path) -> Backups:
    return Backups(tmp_path / "state")


def test_files_are_backed_up_replaced_and_restored(tmp_path: Path, backups: Backups) -> None:
    old, new = tmp_path / ".old.json", tmp_path / "deep/new.toml"
    old.write_text("before")
    old.chmod(0o640)

    folder, outcomes = done(backups, [change(new, "made"), change(old, "after")])

    assert outcomes == [ChangeOutcome(path=new), ChangeOutcome(path=old)]
    assert (new.read_text(), old.read_text()) == ("made", "after")
    assert old.stat().st_mode & 0o777 == 0o640
    assert new.stat().st_mode & 0o777 == 0o600
    assert (folder / "1-old.json").read_text() == "before"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert [entry["path"] for entry in json.loads((folder / "manifest.json").read_text())] == [str(new), str(old)]

    assert backups.undo(force=False) == [ChangeOutcome(path=old), ChangeOutcome(path=new)]
    assert old.read_text() == "before"
    assert old.stat().st_mode & 0o777 == 0o640
    assert not new.exists()
    assert backups.undo(force=False) is None


def test_adoptions_are_undone_one_after_the_other(tmp_path: Path, backups: Backups) -> None:
    path = tmp_path / "a"
    for text in ("one", "two"):
        backups.apply([change(path, text)])

    backups.undo(force=False)
    assert path.read_text() == "one"
    backups.undo(force=False)
    assert not path.exists()


BEFORE = '{"mcpServers": {"a": {"command": "a"}}}'
AFTER = '{"mcpServers": {"toolreeve": {"command": "toolreeve", "args": ["mcp"]}}}'
TAKEN = ServersTaken(format="json", servers=((("mcpServers",), ("a",)),), entry=("mcpServers",))
BLOCK = '[mcp_servers.a]\ncommand = "a"\n'


def adopted(tmp_path: Path, backups: Backups) -> tuple[Path, Path, Path]:
    """The user's own file and two clients, whose servers were taken over."""
    own, one, other = tmp_path / "toolreeve.toml", tmp_path / "one", tmp_path / "other"
    for client in (one, other):
        client.write_text(BEFORE)
    clients = [FileChange(path=path, before=BEFORE, after=AFTER, reversal=TAKEN) for path in (one, other)]
    backups.apply([FileChange(path=own, before=None, after=BLOCK, reversal=BlocksAdded(blocks=(BLOCK,))), *clients])
    return own, one, other


def test_what_was_changed_since_stays_when_the_servers_return(tmp_path: Path, backups: Backups) -> None:
    own, one, other = adopted(tmp_path, backups)
    one.write_text(AFTER[:-1] + ', "theme": "dark"}')
    own.write_text(BLOCK + "\n[limits]\ntimeout = 5\n")

    assert backups.undo(force=False) == [
        ChangeOutcome(path=other),
        ChangeOutcome(path=one, merged=True),
        ChangeOutcome(path=own, merged=True),
    ]
    assert one.read_text() == BEFORE[:-1] + ', "theme": "dark"}'
    assert own.read_text() == "[limits]\ntimeout = 5\n"
    assert backups.undo(force=False) is None


def test_a_client_that_cannot_be_given_its_servers_back_keeps_ours(tmp_path: Path, backups: Backups) -> None:
    own, one, other = adopted(tmp_path, backups)
    one.write_text(AFTER + "}")

    first, second, third = backups.undo(force=False) or []

    assert first == ChangeOutcome(path=other)
    assert "edited since, and is not valid JSON" in second.problem
    assert "correct that and undo again, or use --force" in second.problem
    assert third == ChangeOutcome(path=own, problem=f"not changed: {one} still needs it")
    assert (one.read_text(), other.read_text(), own.read_text()) == (AFTER + "}", BEFORE, BLOCK)

    one.write_text(AFTER + "// mended\n")
    other.write_text("mine by now")
    assert backups.undo(force=False) == [ChangeOutcome(path=one, merged=True), ChangeOutcome(path=own)]
    assert (one.read_text(), other.read_text(), own.exists()) == (BEFORE + "// mended\n", "mine by now", False)


def test_by_force_a_file_is_as_it_was_and_what_it_held_is_kept(tmp_path: Path, backups: Backups) -> None:
    own, one, other = adopted(tmp_path, backups)
    one.write_text("by hand")
    other.unlink()

    assert backups.undo(force=True) == [ChangeOutcome(path=other), ChangeOutcome(path=one), ChangeOutcome(path=own)]
    assert (one.read_text(), other.read_text(), own.exists()) == (BEFORE, BEFORE, False)
    kept = [path for path in (tmp_path / "state").rglob("*-one") if path.read_text() == "by hand"]
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]


def test_a_deleted_file_is_restored_only_with_force(tmp_path: Path, backups: Backups) -> None:
    own, one, _ = adopted(tmp_path, backups)
    one.unlink()

    outcomes = backups.undo(force=False) or []

    assert [outcome.problem for outcome in outcomes if outcome.path == one] == ["was deleted; --force restores it"]
    assert own.read_text() == BLOCK


def test_a_change_missing_from_the_manifest_is_not_guessed(tmp_path: Path, backups: Backups) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    backups.apply([change(path, "after")])
    path.write_text("by hand")

    assert "the manifest does not say" in (backups.undo(force=False) or [])[0].problem
    assert path.read_text() == "by hand"


def test_a_file_that_its_owner_made_read_only_is_not_replaced(tmp_path: Path, backups: Backups) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    path.chmod(0o444)

    _, outcomes = backups.apply([change(path, "after")])

    assert outcomes == [ChangeOutcome(path=path, problem=f"is read-only: chmod u+w {path}")]
    assert path.read_text() == "before"


def test_a_link_stays_a_link(tmp_path: Path, backups: Backups) -> None:
    target, link = tmp_path / "dotfiles/config.json", tmp_path / "config.json"
    target.parent.mkdir()
    target.write_text("before")
    link.symlink_to(target)

    backups.apply([change(link, "after")])

    assert link.is_symlink()
    assert target.read_text() == "after"
    backups.undo(force=False)
    assert link.is_symlink()
    assert target.read_text() == "before"


def test_a_file_that_changed_while_we_looked_is_not_written_over(tmp_path: Path, backups: Backups) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    planned = change(path, "after")
    path.write_text("meanwhile")

    _, outcomes = backups.apply([planned])

    assert outcomes == [
        ChangeOutcome(path=path, problem="was changed by another program in the meantime: run this again")
    ]
    assert path.read_text() == "meanwhile"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "state"]


def test_without_the_users_own_file_no_client_is_changed(tmp_path: Path, backups: Backups) -> None:
    own, client = tmp_path / "blocked/toolreeve.toml", tmp_path / "client"
    (tmp_path / "blocked").write_text("a file where a directory should be")
    client.write_text("before")

    _, outcomes = backups.apply([FileChange(path=own, before=None, after="x"), change(client, "after")], private=[own])

    assert [outcome.path for outcome in outcomes] == [own]
    assert outcomes[0].problem
    assert client.read_text() == "before"


def test_a_failed_change_leaves_nothing_to_undo(tmp_path: Path, backups: Backups) -> None:
    own, client = tmp_path / "toolreeve.toml", tmp_path / "client"
    backups.apply([change(own, "first")], private=[own])
    planned = [change(own, "second"), FileChange(path=client, before=None, after="x")]
    own.write_text("meanwhile")

    folder, outcomes = backups.apply(planned, private=[own])

    assert folder is None
    assert [bool(outcome.problem) for outcome in outcomes] == [True]
    own.write_text("first")
    assert backups.undo(force=False) == [ChangeOutcome(path=own)]
    assert not own.exists()


def test_only_what_was_changed_is_undone(tmp_path: Path, backups: Backups) -> None:
    own, one, other = tmp_path / "toolreeve.toml", tmp_path / "one", tmp_path / "other"
    for client in (one, other):
        client.write_text(BEFORE)
    clients = [FileChange(path=path, before=BEFORE, after=AFTER, reversal=TAKEN) for path in (one, other)]
    other.write_text('{"mcpServers": {}}')

    backups.apply([FileChange(path=own, before=None, after=BLOCK, reversal=BlocksAdded(blocks=(BLOCK,))), *clients])

    assert backups.undo(force=False) == [ChangeOutcome(path=one), ChangeOutcome(path=own)]
    assert (one.read_text(), other.read_text()) == (BEFORE, '{"mcpServers": {}}')


def test_without_room_for_backups_nothing_is_changed_and_earlier_ones_can_be_taken_back(
    tmp_path: Path, backups: Backups
) -> None:
    path, blocked = tmp_path / "a", tmp_path / ("n" * 254)
    path.write_text("before")
    blocked.write_text("before")  # a name of its own, and none for its backup, which is longer
    backups.apply([change(path, "after")])

    with pytest.raises(ConfigError, match="no backups could be made there, so nothing was changed"):
        backups.apply([change(path, "again"), change(blocked, "after")])

    assert (path.read_text(), blocked.read_text()) == ("after", "before")
    assert backups.undo(force=False) == [ChangeOutcome(path=path)]
    assert path.read_text() == "before"


def test_a_link_that_led_nowhere_leads_nowhere_again(tmp_path: Path, backups: Backups) -> None:
    target, link = tmp_path / "dotfiles/toolreeve.toml", tmp_path / "toolreeve.toml"
    link.symlink_to(target)

    backups.apply([change(link, "made")])
    assert target.read_text() == "made"
    backups.undo(force=False)

    assert link.is_symlink()
    assert not target.exists()


def test_adoptions_exclude_each_other_and_keep_the_state_private(tmp_path: Path, backups: Backups) -> None:
    with backups.locked():
        other = (tmp_path / "state/adopted/lock").open("w")
        with other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "state", tmp_path / "state/adopted")} == {0o700}


def test_the_users_own_file_is_private_from_then_on(tmp_path: Path, backups: Backups) -> None:
    own = tmp_path / "toolreeve.toml"
    own.write_text("")
    own.chmod(0o644)

    backups.apply([change(own, "x")], private=[own])

    assert own.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "[1]", '{"path": 1}', '[{"path": "/x"}]'])
def test_a_damaged_manifest_restores_nothing(tmp_path: Path, backups: Backups, content: str) -> None:
    path = tmp_path / "a"
    folder, _ = done(backups, [change(path, "after")])
    (folder / "manifest.json").write_text(content)

    with pytest.raises(ConfigError, match="cannot be read"):
        backups.undo(force=True)
    assert path.read_text() == "after"


def test_a_backup_that_was_tampered_with_is_not_restored(tmp_path: Path, backups: Backups) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    folder, _ = done(backups, [change(path, "after")])
    (folder / "0-a").write_text("evil")

    assert backups.undo(force=True) == [ChangeOutcome(path=path, problem="its backup was modified")]
    assert path.read_text() == "after"
