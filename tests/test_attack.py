import pytest
from bench.attack import main
from bench.attacks import oracles


@pytest.mark.parametrize("suite", ["commands", "paths", "ssrf", "templates"])
def test_no_attack_gets_through(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", suite]) == 0

    assert capsys.readouterr().out.endswith("nothing escaped\n")


@pytest.mark.parametrize("suite", ["argv", "flags"])
def test_the_analysis_agrees_with_real_programs(
    suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(oracles, "SECONDS", 2)

    assert main(["--suite", suite]) == 0

    assert capsys.readouterr().out.endswith("nothing escaped\n")


def test_no_exploit_of_the_analysis_takes_effect(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", "replay"]) == 0

    assert capsys.readouterr().out.endswith("nothing escaped\n")
