import pytest
from bench.attack import main
from bench.attacks import command_line, oracles
from bench.attacks.exploits import CODE_OF_THE_WORKSPACE, RUN_OR_WRITE, SENT


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


def test_no_exploit_takes_effect_on_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some = (*RUN_OR_WRITE[6:24:6], *CODE_OF_THE_WORKSPACE[:49:7], *SENT[::8])
    monkeypatch.setattr(command_line, "COMMANDS", some)

    assert main(["--suite", "command_line"]) == 0

    assert capsys.readouterr().out.endswith("nothing escaped\n")
