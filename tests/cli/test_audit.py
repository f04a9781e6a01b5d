import csv
import io
import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.terminal import run_on_terminal
from toolreeve.cli.audit import FORMATS
from toolreeve.record import export

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def used(shell: Shell) -> Shell:
    """Three calls are on record; the second failed."""
    (shell.workspace / "a.txt").write_text("text")
    shell.run("call", "read_file", "path=a.txt", "--session", "one")
    shell.run("call", "read_file", "path=b.txt", "--session", "one")
    shell.run("--mode", "bypass", "call", "write_file", "path=c.txt", "content=x", "--session", "two")
    return shell


def test_calls_are_listed_newest_first(used: Shell) -> None:
    records = used.run("audit", "list", "--json").json

    assert [(record["tool"], record["success"]) for record in records] == [
        ("write_file", True),
        ("read_file", False),
        ("read_file", True),
    ]
    assert used.run("audit", "list").out.splitlines()[0].split() == [
        "time",
        "call",
        "tool",
        "touched",
        "outcome",
        "ms",
    ]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--tool", "read_file"], 2),
        (["--session", "two"], 1),
        (["--success", "false"], 1),
        (["--code", "E_FILE_NOT_FOUND"], 1),
        (["--since", "2100-01-01"], 0),
        (["--since", "1h"], 3),
        (["--until", "1h"], 0),
        (["--until", "2100-01-01"], 3),
        (["--last", "1"], 1),
        (["--kind", "intent"], 1),
    ],
)
def test_the_list_can_be_narrowed(used: Shell, options: list[str], count: int) -> None:
    assert len(used.run("audit", "list", "--json", *options).json) == count


def test_a_filter_that_makes_no_sense_is_bad_usage(used: Shell) -> None:
    assert used.run("audit", "list", "--since", "yesterday-ish").status == 2
    assert used.run("audit", "list", "--success", "maybe").status == 2


def test_one_call_is_shown_with_all_its_records(used: Shell) -> None:
    call_id = used.run("audit", "list", "--json").json[0]["call_id"]

    kinds = [record["kind"] for record in used.run("audit", "show", call_id, "--json").json]

    assert kinds == ["intent", "call"]
    assert used.run("audit", "show", "nothing").status == 5


def test_the_record_can_be_exported(used: Shell) -> None:
    lines = used.run("audit", "export").out.splitlines()
    table = list(csv.DictReader(io.StringIO(used.run("audit", "export", "--format", "csv").out)))

    assert [json.loads(line)["kind"] for line in lines] == [row["kind"] for row in table]
    assert len(used.run("audit", "export", "--tool", "write_file").out.splitlines()) == 2


def test_an_export_is_private_and_never_replaces_a_file(used: Shell) -> None:
    path = used.workspace / "audit.jsonl"

    first = used.run("audit", "export", "--output", str(path))
    second = used.run("audit", "export", "--output", str(path))

    assert (first.status, second.status) == (0, 2)
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_untouched_record_verifies_and_shows_its_head(used: Shell) -> None:
    verified = used.run("audit", "verify", "--json")

    assert (verified.status, verified.json["ok"]) == (0, True)
    assert used.run("audit", "verify", "--expect", verified.json["head"]).status == 0
    assert used.run("audit", "verify", "--expect", "00" * 32).status == 7


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET body = replace(CAST(body AS TEXT), 'read_file', 'list_file') WHERE seq = 1",
        "DELETE FROM audit WHERE seq = 1",
        "DELETE FROM audit WHERE seq = 2",
        "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)",
        "DELETE FROM audit",
    ],
)
def test_a_tampered_record_is_found_and_exits_with_7(used: Shell, statement: str) -> None:
    with sqlite3.connect(used.home / ".local/state/toolreeve/toolreeve.db") as connection:
        connection.execute(statement)
    connection.close()

    verified = used.run("audit", "verify", "--json")

    assert (verified.status, verified.json["ok"]) == (7, False)
    assert verified.json["problems"]


def test_a_database_that_was_removed_whole_is_not_called_intact(used: Shell) -> None:
    state = used.home / ".local/state/toolreeve"
    for name in ("toolreeve.db", "toolreeve.db-wal", "toolreeve.db-shm"):
        (state / name).unlink(missing_ok=True)

    assert used.run("audit", "verify").status != 0


def test_lost_records_exit_with_8_until_a_person_accepts_the_gap(used: Shell) -> None:
    state = used.home / ".local/state/toolreeve"
    older = {path: path.read_bytes() for path in state.glob("toolreeve.db*") if path.is_file()}
    used.run("call", "read_file", "path=a.txt")
    for path in [path for path in state.glob("toolreeve.db*") if path.is_file()]:
        path.unlink()
    for path, content in older.items():
        path.write_bytes(content)

    lost = used.run("audit", "verify", "--json")
    used.run("call", "read_file", "path=a.txt")
    still = used.run("audit", "verify", "--json")
    unknown = used.run("audit", "accept", "1")
    listed = used.run("audit", "accept")
    gap = still.json["findings"][0]["gap"]
    accepted = used.run("audit", "accept", str(gap), "--reason", "restored a backup")
    after = used.run("audit", "verify", "--json")

    assert (lost.status, lost.json["state"], lost.json["findings"][0]["gap"]) == (8, "lost", None)
    assert (still.status, still.json["state"], unknown.status) == (8, "lost", 5)
    assert f"audit accept {gap}" in listed.out
    assert (accepted.status, after.status, after.json["accepted_gaps"]) == (0, 0, [gap])
    assert "accepted gap" in used.run("audit", "verify").out


def test_a_removed_witness_exits_with_7_also_after_the_next_call(used: Shell, caplog: pytest.LogCaptureFixture) -> None:
    (used.home / ".local/state/toolreeve/witness/toolreeve.db").unlink()

    at_once = used.run("audit", "verify", "--json")
    call = used.run("call", "read_file", "path=a.txt")
    later = used.run("audit", "verify", "--json")
    doctor = used.run("doctor", "--json")

    assert [(each.status, each.json["state"]) for each in (at_once, later)] == [(7, "unwitnessed")] * 2
    assert (call.status, "the witness is missing" in caplog.text) == (0, True)
    assert "the witness is missing" in doctor.out


def test_where_nothing_happened_there_is_nothing_to_read(shell: Shell) -> None:
    assert shell.run("audit", "list", "--json").json == []
    assert shell.run("audit", "verify").status == 0
    assert shell.run("audit", "export").out == ""


def test_the_formats_are_those_that_can_be_written() -> None:
    assert FORMATS == export.FORMATS


def test_the_list_says_what_was_touched_and_its_short_ids_are_accepted(used: Shell) -> None:
    written, _, read = (line.split() for line in used.run("audit", "list").out.splitlines()[1:])

    assert (written[3], written[4]) == ("write_file", "c.txt")
    assert (read[3], read[4]) == ("read_file", "a.txt")
    assert len(written[2]) < 27
    assert used.run("audit", "show", read[2], "--json").json[0]["tool"] == "read_file"
    assert used.run("undo", written[2]).status == 0
    assert not (used.workspace / "c.txt").exists()


@pytest.mark.parametrize("columns", [80, 100])
def test_on_a_terminal_each_call_is_one_line_within_its_width(used: Shell, columns: int) -> None:
    used.run("call", "bash", "command=ls " + "long-name " * 30)
    screen = run_on_terminal(used, "audit", "list", columns=columns)

    lines = [line.rstrip() for line in screen.splitlines() if "read_file" in line or "bash" in line]
    assert len(lines) == 3
    assert max(len(COLOUR.sub("", line)) for line in lines) <= columns
    assert "…" in next(line for line in lines if "bash" in line)
    assert used.run("audit", "show", next(line for line in lines if "bash" in line).split()[1]).status == 0


def test_an_unknown_call_is_an_error_in_json_too(used: Shell) -> None:
    printed = used.run("audit", "show", "zzz", "--json")

    assert printed.json["success"] is False
    assert "zzz" in printed.json["error"]["message"]


def test_on_a_terminal_what_fits_is_not_cut(used: Shell) -> None:
    name = "a-long-name.txt"
    used.run("call", "file_exists", f"path={name}")

    # Wide enough for the longest short id, which depends on how close in time the calls were made.
    assert name in run_on_terminal(used, "audit", "list", columns=110)


def test_an_archive_is_verified_alone_and_its_export_is_recorded(used: Shell) -> None:
    made = used.run("audit", "archive", "old.jsonl", "--json")
    used.run("call", "read_file", "path=a.txt")

    verified = used.run("audit", "verify", "--file", "old.jsonl", "--json")
    noted = used.run("audit", "list", "--kind", "archived", "--json").json

    assert made.status == 0
    assert (used.workspace / "old.jsonl").stat().st_mode & 0o777 == 0o600
    assert (verified.status, verified.json["state"]) == (0, "intact")
    assert verified.json["records"] == made.json["last"]
    assert verified.json["head"] == made.json["head"] == noted[0]["head"]
    assert used.run("audit", "verify").status == 0
    assert used.run("audit", "archive", "old.jsonl").status == 2


def test_an_archive_ends_before_the_given_time(used: Shell) -> None:
    made = used.run("audit", "archive", "old.jsonl", "--before", "2001-01-01", "--json")

    assert made.json["last"] < used.run("audit", "verify", "--json").json["records"]
    assert "a.txt" not in (used.workspace / "old.jsonl").read_text()
    assert used.run("audit", "verify", "--file", "old.jsonl").status == 0


@pytest.mark.parametrize("change", ["edit", "remove", "swap", "cut", "garbage"])
def test_a_changed_archive_exits_with_7(used: Shell, change: str) -> None:
    made = used.run("audit", "archive", "old.jsonl", "--json").json
    path = used.workspace / "old.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    match change:
        case "edit":
            lines[1] = lines[1].replace("a.txt", "z.txt").replace("b.txt", "z.txt").replace("c.txt", "z.txt")
        case "remove":
            del lines[1]
        case "swap":
            lines[0], lines[1] = lines[1], lines[0]
        case "cut":
            del lines[-1]
        case "garbage":
            lines[1] = "{}\n"
    assert "".join(lines) != path.read_text()
    path.write_text("".join(lines))

    assert used.run("audit", "verify", "--file", "old.jsonl").status == 7
    assert used.run("audit", "verify", "--file", "old.jsonl", "--expect", made["head"]).status == 7


def test_a_tampered_record_is_not_archived(used: Shell) -> None:
    with sqlite3.connect(used.home / ".local/state/toolreeve/toolreeve.db") as database:
        database.execute("UPDATE audit SET body = '{}' WHERE seq = 1")

    done = used.run("audit", "archive", "old.jsonl")

    assert done.status == 7
    assert not (used.workspace / "old.jsonl").exists()


def test_only_calls_of_this_workspace_are_listed_unless_all_are_wanted(used: Shell) -> None:
    other = used.workspace.parent / "other"
    other.mkdir()

    elsewhere = used.run("--workspace", str(other), "audit", "list")

    assert "read_file" not in elsewhere.out
    assert f"no such records of calls in {other}; --all includes other workspaces" in elsewhere.err
    assert len(used.run("--workspace", str(other), "audit", "list", "--all", "--json").json) == 3


def database_of(used: Shell) -> Path:
    return used.home / ".local/state/toolreeve/toolreeve.db"


def test_rotation_moves_records_to_a_file_and_both_parts_verify(used: Shell) -> None:
    before = used.run("audit", "verify", "--json").json
    first = used.run("audit", "rotate", "one.jsonl", "--before", "0s", "--json").json
    used.run("call", "read_file", "path=a.txt")
    second = used.run("audit", "rotate", "two.jsonl", "--before", "0s", "--json").json
    after = used.run("audit", "verify", "--json").json

    assert (first["last"], first["head"]) == (before["records"], before["head"])
    assert (after["state"], after["archived_up_to"]) == ("intact", second["last"])
    assert first["last"] < second["last"]
    assert [used.run("audit", "verify", "--file", name).status for name in ("one.jsonl", "two.jsonl")] == [0, 0]
    assert used.run("audit", "verify", "--expect", second["head"]).status == 0
    assert [each["kind"] for each in used.run("audit", "list", "--kind", "rotated", "--json").json] == ["rotated"]
    assert used.run("call", "read_file", "path=a.txt").status == 0
    assert used.run("audit", "verify").status == 0


def test_a_kill_before_the_witness_learns_of_a_rotation_loses_nothing(used: Shell) -> None:
    witness = database_of(used).parent / "witness" / "toolreeve.db"
    known = witness.read_bytes()
    used.run("audit", "rotate", "one.jsonl", "--before", "0s")
    with sqlite3.connect(database_of(used)) as database:
        database.execute("UPDATE witness SET synced = 0")
    witness.write_bytes(known)

    assert used.run("audit", "verify", "--json").json["state"] == "intact"
    assert used.run("call", "read_file", "path=a.txt").status == 0
    assert used.run("audit", "verify", "--json").json["accepted_gaps"] == []


def test_after_a_rotation_removed_records_are_still_noticed(used: Shell) -> None:
    used.run("audit", "rotate", "one.jsonl", "--before", "0s")
    used.run("call", "read_file", "path=a.txt")
    with sqlite3.connect(database_of(used)) as database:
        database.execute("DELETE FROM audit WHERE seq = (SELECT min(seq) FROM audit)")

    assert used.run("audit", "verify", "--json").json["state"] == "tampered"


DAMAGE = {
    "edit": "UPDATE audit SET body = '{}' WHERE seq = 2",
    "remove": "DELETE FROM audit WHERE seq = 2",
    "cut": "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)",
    "checkpoint": "DELETE FROM checkpoint",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_repaired_record_continues_and_says_what_was_damaged(used: Shell, damage: str) -> None:
    with sqlite3.connect(database_of(used)) as database:
        database.execute(DAMAGE[damage])
    broken = used.run("audit", "verify", "--json")
    repaired = used.run("audit", "repair", "--reason", "a trial", "--json")
    for gap in [each["gap"] for each in repaired.json["findings"]]:  # what the witness alone knows, a person accepts
        used.run("audit", "accept", str(gap))
    used.run("call", "read_file", "path=a.txt")
    after = used.run("audit", "verify", "--json")

    assert (broken.status, after.status) == (7, 0), repaired
    assert repaired.status == (7 if damage == "cut" else 0)
    noted = used.run("audit", "list", "--kind", "repair", "--json").json
    assert [each["reason"] for each in noted] == ["a trial"]
    assert bool(after.json["repaired"]) == (damage != "checkpoint")
    assert noted[0]["restored"] == (["checkpoint"] if damage == "checkpoint" else [])


def test_damage_after_a_repair_is_noticed_again(used: Shell) -> None:
    for body in ("{}", "[]"):
        with sqlite3.connect(database_of(used)) as database:
            database.execute("UPDATE audit SET body = ? WHERE seq = 2", (body,))
        assert used.run("audit", "verify").status == 7
        assert used.run("audit", "repair").status == 0

    assert used.run("audit", "repair").err.strip().endswith("nothing to repair")
