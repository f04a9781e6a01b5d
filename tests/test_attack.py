import pytest
from bench.attack import main


@pytest.mark.parametrize("suite", ["commands", "paths", "ssrf", "templates"])
def test_no_attack_gets_through(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", suite]) == 0

    assert capsys.readouterr().out.endswith("nothing escaped\n")
