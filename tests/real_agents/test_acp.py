"""Real ACP agents held by us: write, run a command; allowed, denied, and cancelled."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.acp.holding import Person
from tests.peers.programs import NODE, PEERS
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.recording import record
from toolreeve.acp.client.agents import find_agent
from toolreeve.acp.client.held_agent import HeldAgent, hold_agent
from toolreeve.acp.client.turn import AgentTurn
from toolreeve.approval.request import Request
from toolreeve.config import Settings
from toolreeve.config.sections.network import Network
from toolreeve.config.sections.state import State
from toolreeve.config.sections.workspace import Workspace
from toolreeve.core.errors import ToolError
from toolreeve.runtime.toolreeve import Toolreeve
from toolreeve.testing import ScriptedModel, call, say
from toolreeve.testing.script import Reply, Turn

Write = Callable[[Path], Turn]
MARK = "SCENARIO"


def _nothing(_: Path, __: ScriptedModel) -> None:
    """No file is needed."""


@dataclass(frozen=True, kw_only=True)
class AcpAgent:
    """How an agent is started, and what its own tools are called."""

    command: Path
    write: Write
    shell: Callable[[str], Turn]
    provider: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    address: str = ""
    prepare: Callable[[Path, ScriptedModel], None] = _nothing


def _codex(home: Path, model: ScriptedModel) -> None:
    (home / ".codex").mkdir(parents=True)
    url = model.base_url("openai_responses")
    (home / ".codex" / "config.toml").write_text(
        f'model = "scripted"\nmodel_provider = "fake"\napproval_policy = "on-request"\n[model_providers.fake]\n'
        f'name = "fake"\nbase_url = "{url}"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
    )


def _opencode(home: Path, model: ScriptedModel) -> None:
    options = {"baseURL": f"http://localhost:{model.port}/v1", "apiKey": "scripted"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"scripted": {}}}
    body = {
        "model": "fake/scripted",
        "provider": {"fake": provider},
        "permission": {"edit": "ask", "bash": "ask"},
        "autoupdate": False,
    }
    (home / ".config" / "opencode").mkdir(parents=True)
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps(body))


def _vibe(home: Path, model: ScriptedModel) -> None:
    (home / ".vibe").mkdir()
    (home / ".vibe" / "config.toml").write_text(
        'active_model = "scripted"\nenable_telemetry = false\nenable_update_checks = false\n'
        f'[[providers]]\nname = "fake"\napi_base = "http://127.0.0.1:{model.port}/v1"\napi_key_env_var = "FAKE_KEY"\n'
        '[[models]]\nname = "scripted"\nprovider = "fake"\nalias = "scripted"\n'
        '[tools.write_file]\npermission = "ask"\n[tools.bash]\npermission = "ask"\n'
    )


def _hermes(home: Path, model: ScriptedModel) -> None:
    (home / ".hermes").mkdir()
    (home / ".hermes" / "config.yaml").write_text(
        f"model:\n  provider: custom\n  default: scripted\n  base_url: http://127.0.0.1:{model.port}/v1\n"
        "  api_key: scripted\n"
    )


AGENTS = {
    "goose": AcpAgent(
        command=PEERS / "node_modules" / "@aaif" / "goose-binary-linux-x64" / "bin" / "goose",
        write=lambda path: call("write", path=str(path), content="hello\n"),
        shell=lambda line: call("shell", command=line),
        provider="openai",
        env={"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "scripted", "OPENAI_API_KEY": "scripted"},
        address="OPENAI_HOST=http://127.0.0.1:{port}",
    ),
    "fast-agent": AcpAgent(
        command=PROGRAMS.parents[1] / "py" / "bin" / "fast-agent",
        write=lambda path: call("write_text_file", path=str(path), content="hello\n"),
        shell=lambda line: call("execute", command=line),
        provider="openai",
        args=("acp", "--model", "generic.scripted", "-x"),
        env={"GENERIC_API_KEY": "scripted"},
        address="GENERIC_BASE_URL=http://127.0.0.1:{port}/v1",
    ),
    "gemini": AcpAgent(
        command=PROGRAMS / "gemini",
        write=lambda path: call("write_file", file_path=str(path), content="hello\n"),
        shell=lambda line: call("run_shell_command", command=line, description="scripted"),
        provider="gemini",
        env={"GEMINI_API_KEY": "scripted", "GEMINI_MODEL": "gemini-2.5-flash"},
        address="GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:{port}",
    ),
    "qwen": AcpAgent(
        command=PROGRAMS / "qwen",
        write=lambda path: call("write_file", file_path=str(path), content="hello\n"),
        shell=lambda line: call("run_shell_command", command=line, description="scripted", is_background=False),
        provider="openai",
        env={"OPENAI_API_KEY": "scripted", "OPENAI_MODEL": "scripted"},
        address="OPENAI_BASE_URL=http://127.0.0.1:{port}/v1",
    ),
    "claude": AcpAgent(
        command=PROGRAMS / "claude-agent-acp",
        write=lambda path: call("Write", file_path=str(path), content="hello\n"),
        shell=lambda line: call("Bash", command=line, description="scripted"),
        provider="anthropic",
        env={"ANTHROPIC_API_KEY": "scripted"},
        address="ANTHROPIC_BASE_URL=http://127.0.0.1:{port}",
    ),
    "codex": AcpAgent(
        command=PROGRAMS / "codex-acp",
        write=lambda path: call(
            "exec_command",
            cmd=f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path.name}\n+hello\n*** End Patch\nEOF",
            workdir=str(path.parent),
        ),
        shell=lambda line: call(
            "exec_command", cmd=line, sandbox_permissions="require_escalated", justification="scripted"
        ),
        provider="openai_responses",
        env={"FAKE_KEY": "scripted"},
        prepare=_codex,
    ),
    "opencode": AcpAgent(
        command=PROGRAMS / "opencode",
        write=lambda path: call("write", filePath=str(path), content="hello\n"),
        shell=lambda line: call("bash", command=line, description="scripted", timeout=10000),
        provider="openai",
        prepare=_opencode,
    ),
    "vibe": AcpAgent(
        command=PROGRAMS.parents[1] / "vibe" / "bin" / "vibe-acp",
        write=lambda path: call("write_file", path=str(path), content="hello\n"),
        shell=lambda line: call("bash", command=line),
        provider="openai",
        env={"FAKE_KEY": "scripted", "MISTRAL_API_KEY": "scripted"},
        prepare=_vibe,
    ),
    "hermes": AcpAgent(
        command=PROGRAMS.parents[1] / "hermes" / "bin" / "hermes-acp",
        write=lambda path: call("write_file", path=str(path), content="hello\n"),
        shell=lambda line: call("terminal", command=f"rm -rf none; {line}"),
        provider="openai",
        env={"OPENAI_API_KEY": "scripted"},
        prepare=_hermes,
    ),
}


def is_scenario(body: Any) -> bool:
    """Agents also ask for titles and the like."""
    return MARK in json.dumps(body) and bool(body.get("tools"))


@pytest.fixture(params=AGENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Absent(Person):
    """Never answers; the turn is cancelled at the first question."""

    held: HeldAgent

    async def __call__(self, _: Request) -> bool:
        self.held.cancel()
        await asyncio.Event().wait()
        return True


async def run(
    place: Path, name: str, turns: list[Reply], person: Person, *, scenario: str
) -> tuple[AgentTurn, ScriptedModel]:
    agent = AGENTS[name]
    (place / "work").mkdir()
    (place / "home").mkdir()
    with ScriptedModel(turns, only=is_scenario) as model:
        agent.prepare(place / "home", model)
        variable, _, address = agent.address.format(port=model.port).partition("=")
        path = f"{NODE.parent}:/usr/local/bin:/usr/bin:/bin"
        table = {
            "command": str(agent.command),
            **({"args": list(agent.args)} if agent.args else {}),
            "env": {"PATH": path, "CI": "1", **agent.env, **({variable: address} if variable else {})},
            "hosts": ["127.0.0.1", "localhost"],
            "home": str(place / "home"),
            "readable": [str(NODE.parents[1])],
            "tools": False,
            "sandbox": {"max_memory_mb": 4096, "max_open_files": 8192, "max_processes": 512},
        }
        settings = Settings(
            workspace=Workspace(dir=str(place / "work")),
            state=State(dir=str(place / "state")),
            network=Network(allow=(f"127.0.0.1:{model.port}", f"localhost:{model.port}")),
            acp_agents={name: table},
        )
        async with Toolreeve(settings=settings, approve=person) as reeve:
            places = {str(place / "work"): "/project", str(place / "home"): "/home/agent", str(place): "/place"}
            record(reeve, name, scenario, places)
            async with hold_agent(reeve, find_agent(reeve.configuration, name)) as held:
                if isinstance(person, Absent):
                    person.held = held
                return await asyncio.wait_for(held.prompt(f"{MARK}: work through your list."), 120), model


async def test_what_is_allowed_is_done(tmp_path: Path, name: str) -> None:
    agent = AGENTS[name]
    target = tmp_path / "work" / "hello.txt"
    person = Person(says=True)

    turn, model = await run(
        tmp_path, name, [agent.write(target), agent.shell("touch made"), say("Finished.")], person, scenario="allowed"
    )

    assert turn.text.endswith("Finished."), (turn, model.rejections)
    assert target.read_text() == "hello\n"
    assert (tmp_path / "work" / "made").exists()
    assert person.asked


async def test_nothing_is_written_when_it_is_denied(tmp_path: Path, name: str) -> None:
    agent = AGENTS[name]
    target = tmp_path / "work" / "hello.txt"

    with contextlib.suppress(ToolError):  # some agents end their turn with an error
        await run(
            tmp_path,
            name,
            [agent.write(target), agent.shell("touch made"), say("Refused.")],
            Person(says=False),
            scenario="denied",
        )

    assert not target.exists()
    assert not (tmp_path / "work" / "made").exists()


async def test_nothing_is_written_when_the_turn_is_cancelled(tmp_path: Path, name: str) -> None:
    agent = AGENTS[name]
    target = tmp_path / "work" / "hello.txt"

    turn, _ = await run(
        tmp_path, name, [agent.write(target), say("Never said.")], Absent(says=True), scenario="cancelled"
    )

    assert turn.stop == "cancelled"
    assert not target.exists()
