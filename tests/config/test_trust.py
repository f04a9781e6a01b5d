from pathlib import Path

import pytest

from toolreeve.config.trust import TrustedFolders, digest_of
from toolreeve.core.errors import ConfigError


def test_trust_is_kept_in_a_private_file_and_can_be_revoked(tmp_path: Path) -> None:
    folders = TrustedFolders(tmp_path / "state")

    folders.add(tmp_path, "digest")

    assert folders.covers(tmp_path, "digest")
    assert not folders.covers(tmp_path, "other")
    assert folders.path.stat().st_mode & 0o777 == 0o600
    assert folders.path.parent.stat().st_mode & 0o777 == 0o700
    assert folders.revoke(tmp_path)
    assert not folders.revoke(tmp_path)
    assert not folders.covers(tmp_path, "digest")


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', "\xff"])
def test_a_damaged_file_is_an_error_never_trust(tmp_path: Path, content: str) -> None:
    folders = TrustedFolders(tmp_path)
    folders.path.write_text(content, encoding="latin-1")

    with pytest.raises(ConfigError, match="delete it and run `toolreeve trust` again"):
        folders.covers(tmp_path, "digest")


def test_the_digest_depends_on_names_and_contents(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("x")
    two.write_text("y")
    digests = {digest_of([one, two]), digest_of([two, one]), digest_of([one]), digest_of([one, tmp_path / "none"])}
    one.write_text("z")

    assert len(digests | {digest_of([one, two])}) == 5
