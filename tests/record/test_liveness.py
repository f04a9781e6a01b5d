from pathlib import Path

from toolreeve.record.liveness import Liveness


def test_a_running_process_is_not_dead(tmp_path: Path) -> None:
    one, two = Liveness(tmp_path / "record.db"), Liveness(tmp_path / "record.db")
    one.enter(3)
    two.enter(5)

    assert (list(one.dead()), list(two.dead())) == ([], [])


def test_a_process_that_left_leaves_no_trace(tmp_path: Path) -> None:
    one, two = Liveness(tmp_path / "record.db"), Liveness(tmp_path / "record.db")
    one.enter(3)
    one.leave()

    assert list(two.dead()) == []
    assert list((tmp_path / "record.db.live").iterdir()) == []


def test_an_unlocked_file_is_a_dead_process_until_it_is_forgotten(tmp_path: Path) -> None:
    one = Liveness(tmp_path / "record.db")
    one.enter(0)
    (tmp_path / "record.db.live" / "gone").write_bytes(b"%020d" % 42)

    before = list(one.dead())
    one.forget("gone")

    assert (before, list(one.dead())) == ([("gone", 42)], [])


def test_a_malformed_file_means_looking_from_the_beginning(tmp_path: Path) -> None:
    one = Liveness(tmp_path / "record.db")
    one.enter(0)
    (tmp_path / "record.db.live" / "odd").write_bytes(b"nonsense")

    assert list(one.dead()) == [("odd", 0)]


def test_a_link_planted_in_the_directory_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"0" * 20)
    one = Liveness(tmp_path / "record.db")
    one.enter(0)
    (tmp_path / "record.db.live" / "link").symlink_to(target)

    assert list(one.dead()) == []
