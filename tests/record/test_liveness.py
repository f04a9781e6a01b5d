from pathlib import Path

from tests.record.entries import NOW, entry
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.audit import Audit
from toolreeve.record.journal import Journal
from toolreeve.record.liveness import FileLiveness
from toolreeve.record.store import Store


def test_a_running_process_is_not_dead(tmp_path: Path) -> None:
    one, two = FileLiveness(tmp_path / "record.db"), FileLiveness(tmp_path / "record.db")
    one.enter(3)
    two.enter(5)

    assert (list(one.dead()), list(two.dead())) == ([], [])


def test_a_process_that_left_leaves_no_trace(tmp_path: Path) -> None:
    one, two = FileLiveness(tmp_path / "record.db"), FileLiveness(tmp_path / "record.db")
    one.enter(3)
    one.leave()

    assert list(two.dead()) == []
    assert list((tmp_path / "record.db.live").iterdir()) == []


def test_an_unlocked_file_is_a_dead_process_until_it_is_forgotten(tmp_path: Path) -> None:
    one = FileLiveness(tmp_path / "record.db")
    one.enter(0)
    (tmp_path / "record.db.live" / "gone").write_bytes(b"%020d" % 42)

    before = list(one.dead())
    one.forget("gone")

    assert (before, list(one.dead())) == ([("gone", 42)], [])


def test_a_malformed_file_means_looking_from_the_beginning(tmp_path: Path) -> None:
    one = FileLiveness(tmp_path / "record.db")
    one.enter(0)
    (tmp_path / "record.db.live" / "odd").write_bytes(b"nonsense")

    assert list(one.dead()) == [("odd", 0)]


def test_a_process_is_alive_until_it_leaves(tmp_path: Path) -> None:
    one, two = FileLiveness(tmp_path / "record.db"), FileLiveness(tmp_path / "record.db")
    one.enter(0)

    assert [two.is_alive(one.name), two.is_alive("unknown")] == [True, False]
    one.leave()
    assert not two.is_alive(one.name)


def test_a_link_planted_in_the_directory_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"0" * 20)
    one = FileLiveness(tmp_path / "record.db")
    one.enter(0)
    (tmp_path / "record.db.live" / "link").symlink_to(target)

    assert list(one.dead()) == []


class Leases:
    """Liveness by leases in a table that all processes share, as another backend would keep them."""

    def __init__(self, table: dict[str, int], name: str) -> None:
        self.table = table
        self.name = name
        self.expired: set[str] = set()

    def enter(self, seq: int) -> None:
        self.table[self.name] = seq

    def settled(self, seq: int) -> None:
        self.table[self.name] = seq

    def leave(self) -> None:
        del self.table[self.name]

    def dead(self) -> list[tuple[str, int]]:
        return [(name, seq) for name, seq in self.table.items() if name in self.expired]

    def is_alive(self, name: str) -> bool:
        return name in self.table and name not in self.expired

    def forget(self, name: str) -> None:
        del self.table[name]


async def test_the_journal_closes_calls_of_dead_processes_with_any_liveness(tmp_path: Path) -> None:
    table: dict[str, int] = {}
    store = Store(tmp_path / "record.db")
    await store.start()
    first = Journal(store, Redactor(), lambda: NOW, liveness=Leases(table, "first"))
    await first.start()
    await first.intend(entry({"path": "a"}, changes=True, id="the open call"))

    leases = Leases(table, "second")
    leases.expired = {"first"}
    second = Journal(store, Redactor(), lambda: NOW, liveness=leases)
    await second.start()
    kinds = [record.kind for record in await Audit(store).show("the open call")]
    await second.stop()
    await store.close()

    assert kinds == ["intent", "lost"]
    assert table == {}
