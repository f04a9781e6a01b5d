import pytest

from bench.attack import main


def test_no_attack_on_paths_gets_through(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", "paths"]) == 0

    assert capsys.readouterr().out.endswith("nothing escaped\n")
