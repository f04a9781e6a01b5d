"""`toolreeve audit repair` of a malformed database."""

import os
import sqlite3

from tests.cli.conftest import Shell


def test_a_repaired_record_goes_on_and_says_what_is_missing(shell: Shell) -> None:
    for number in range(3):
        shell.run("call", "calculate", f"expression={number} + 1")
    path = shell.home / ".local/state/toolreeve/toolreeve.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    find = "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'audit' AND sql IS NOT NULL"
    (page,) = connection.execute(find).fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))

    repaired = shell.run("audit", "repair", "--reason", "the disk failed")
    verified = shell.run("audit", "verify")
    called = shell.run("call", "calculate", "expression=6 * 7")

    assert "the database is malformed" in repaired.err
    assert any(path.parent.glob("toolreeve.db.malformed-*"))
    assert (repaired.status, verified.status, called.out.strip()) == (0, 0, "42")
