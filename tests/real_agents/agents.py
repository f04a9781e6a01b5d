"""The agents of other projects: how each is started without a person, with Toolreeve as its only extra server."""

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.programs import NODE, ROOT
from toolreeve.testing import ScriptedModel

PROGRAMS = ROOT / ".agents" / "node_modules" / ".bin"
PROMPT = "SCENARIO: work through your list."
PATIENCE = 240
TOOLREEVE = [sys.executable, "-P", "-m", "toolreeve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A home of its own, the workspace below it, and what Toolreeve needs to find neither of the user's."""

    home: Path
    workspace: Path

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
        path = os.pathsep.join([str(NODE.parent), str(PROGRAMS), os.environ["PATH"]])
        return kept | {"HOME": str(self.home), "PATH": path, "NO_COLOR": "1", "CI": "1"}

    def toolreeve(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TOOLREEVE, *arguments], cwd=self.workspace, env=self.environment(), capture_output=True, text=True
        )


class RealAgent(ABC):
    """`name` is the program, `provider` the wire format that it speaks with the model."""

    name: str
    provider: str

    def tool(self, name: str) -> str:
        """What the agent calls one of our tools."""
        return f"mcp__toolreeve__{name}"

    @abstractmethod
    def configure(self, place: Place, model: ScriptedModel) -> None: ...

    @abstractmethod
    def arguments(self, place: Place) -> list[str]: ...

    def environment(self, model: ScriptedModel) -> Mapping[str, str]:
        return {}

    def run(self, place: Place, model: ScriptedModel) -> subprocess.CompletedProcess[str]:
        self.configure(place, model)
        return self.start(place, model, self.arguments(place))

    def start(self, place: Place, model: ScriptedModel, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAMS / self.name, *arguments],
            cwd=place.workspace,
            env={**place.environment(), **self.environment(model)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )


class ClaudeCode(RealAgent):
    name = "claude"
    provider = "anthropic"

    def configure(self, place: Place, model: ScriptedModel) -> None:
        command = {"command": TOOLREEVE[0], "args": [*TOOLREEVE[1:], "mcp"]}
        write_json(place.home / "servers.json", {"mcpServers": {"toolreeve": command}})

    def arguments(self, place: Place) -> list[str]:
        servers = ["--strict-mcp-config", "--mcp-config", str(place.home / "servers.json")]
        return ["-p", PROMPT, *servers, "--allowedTools", "mcp__toolreeve", "--model", "claude-sonnet-4-5"]

    def environment(self, model: ScriptedModel) -> Mapping[str, str]:
        return {
            "ANTHROPIC_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": model.base_url("anthropic"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "MCP_TIMEOUT": "60000",
        }


class Codex(RealAgent):
    name = "codex"
    provider = "openai_responses"

    def tool(self, name: str) -> str:
        return f"mcp__toolreeve.{name}"

    def configure(self, place: Place, model: ScriptedModel) -> None:
        lines = [
            'model = "scripted"',
            'model_provider = "scripted"',
            'approval_policy = "never"',
            "[model_providers.scripted]",
            'name = "scripted"',
            f"base_url = {json.dumps(model.base_url('openai'))}",
            'wire_api = "responses"',
            'env_key = "SCRIPTED_KEY"',
            "[mcp_servers.toolreeve]",
            f"command = {json.dumps(TOOLREEVE[0])}",
            f"args = {json.dumps([*TOOLREEVE[1:], 'mcp'])}",
            "startup_timeout_sec = 60",
        ]
        folder = place.home / ".codex"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text("\n".join(lines) + "\n")

    def arguments(self, place: Place) -> list[str]:
        return ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", PROMPT]

    def environment(self, model: ScriptedModel) -> Mapping[str, str]:
        return {"SCRIPTED_KEY": "scripted"}


class GeminiCli(RealAgent):
    name = "gemini"
    provider = "gemini"

    def tool(self, name: str) -> str:
        return f"mcp_toolreeve_{name}"

    def configure(self, place: Place, model: ScriptedModel) -> None:
        write_json(
            place.home / ".gemini" / "settings.json",
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                "telemetry": {"enabled": False},
                "privacy": {"usageStatisticsEnabled": False},
                "mcpServers": {"toolreeve": {"command": TOOLREEVE[0], "args": [*TOOLREEVE[1:], "mcp"], "trust": True}},
            },
        )

    def arguments(self, place: Place) -> list[str]:
        return ["-p", PROMPT, "--model", "gemini-2.5-flash", "--approval-mode", "yolo"]

    def environment(self, model: ScriptedModel) -> Mapping[str, str]:
        origin = f"http://127.0.0.1:{model.port}"
        return {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": origin, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


class QwenCode(RealAgent):
    name = "qwen"
    provider = "openai"

    def configure(self, place: Place, model: ScriptedModel) -> None:
        write_json(
            place.home / ".qwen" / "settings.json",
            {
                "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
                "telemetry": {"enabled": False},
                "privacy": {"usageStatisticsEnabled": False},
                "mcpServers": {"toolreeve": {"command": TOOLREEVE[0], "args": [*TOOLREEVE[1:], "mcp"], "trust": True}},
            },
        )

    def arguments(self, place: Place) -> list[str]:
        return ["-p", PROMPT, "--approval-mode", "yolo"]

    def environment(self, model: ScriptedModel) -> Mapping[str, str]:
        base = model.base_url("openai")
        return {"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": base, "OPENAI_MODEL": "scripted"}


class OpenCode(RealAgent):
    name = "opencode"
    provider = "openai"

    def tool(self, name: str) -> str:
        return f"toolreeve_{name}"

    def configure(self, place: Place, model: ScriptedModel) -> None:
        write_json(
            place.home / ".config" / "opencode" / "opencode.json",
            {
                "provider": {
                    "scripted": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": {"baseURL": model.base_url("openai"), "apiKey": "scripted"},
                        "models": {"scripted": {"name": "Scripted"}},
                    }
                },
                "model": "scripted/scripted",
                "small_model": "scripted/scripted",
                "autoupdate": False,
                "share": "disabled",
                "mcp": {"toolreeve": {"type": "local", "command": [*TOOLREEVE, "mcp"], "timeout": 60000}},
            },
        )

    def arguments(self, place: Place) -> list[str]:
        return ["run", PROMPT]

    def environment(self, model: ScriptedModel) -> Mapping[str, str]:
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


def write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2))


AGENTS: tuple[RealAgent, ...] = (ClaudeCode(), Codex(), GeminiCli(), OpenCode(), QwenCode())
