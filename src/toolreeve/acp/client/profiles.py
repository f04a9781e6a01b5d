"""Quirk profiles: what is particular about each ACP agent. Data only.

`routes` names what an agent does through its client only, as measured with real agents. It takes effect where the
sandbox enforces it: such an agent sees a read-only workspace.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

READ, WRITE, SHELL = "read", "write", "shell"
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """`args` start the program as an ACP agent, with `env`, where {home} is its home. `mode` asks for everything;
    without one, the agent asks by default. `auth` is the method to authenticate with, `key` the variable of the
    model's key. `tools` are its own names for tools like those of other clients. `missing_file` says how a file that
    does not exist is read. `asks_in_title` marks an agent that states a command in the title only."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    auth: str = ""
    key: str = ""
    mode: str = ""
    routes: frozenset[str] = NOTHING
    tools: Mapping[str, str] = field(default_factory=dict)
    missing_file: Literal["error", "empty"] = "error"
    asks_in_title: bool = False


GENERIC = AgentProfile()
PROFILES: Mapping[str, AgentProfile] = {
    "goose": AgentProfile(
        args=("acp",),
        env={"GOOSE_DISABLE_KEYRING": "1"},
        key="OPENAI_API_KEY",
        mode="approve",
        routes=frozenset((READ, WRITE, SHELL)),
        tools={"write": "Write", "read": "Read", "edit": "Edit", "shell": "bash", "tree": "list_directory"},
    ),
    "fast-agent": AgentProfile(
        args=("-x",),
        env={"FAST_AGENT_HOME": "{home}/.fast-agent"},
        key="GENERIC_API_KEY",
        routes=frozenset((READ, WRITE, SHELL)),
        tools={"write_text_file": "write_file", "read_text_file": "read_file", "execute": "bash"},
    ),
    "gemini": AgentProfile(
        args=("--acp",),
        auth="gemini-api-key",
        key="GEMINI_API_KEY",
        missing_file="empty",
        asks_in_title=True,
    ),
    "qwen": AgentProfile(args=("--acp",), auth="openai", key="OPENAI_API_KEY", mode="default"),
    "claude": AgentProfile(
        env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"},
        key="ANTHROPIC_API_KEY",
        mode="default",
    ),
    "codex": AgentProfile(key="OPENAI_API_KEY", mode="read-only"),
    "opencode": AgentProfile(
        args=("acp",),
        # It talks to a server of its own on loopback; its model is reached through the proxy by name.
        env={"OPENCODE_DISABLE_MODELS_FETCH": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    ),
    "vibe": AgentProfile(key="MISTRAL_API_KEY", mode="ask"),
    "hermes": AgentProfile(),
    "generic": GENERIC,
}
