"""Configured ACP agents: the `[acp_agents.NAME]` tables and A2A_AGENT_COMMAND.

An agent never starts outside of the sandbox. It reaches the hosts of its model and no others, and it can change the
workspace only if it works on files by itself. Each user has a home of their own for it.
"""

import hashlib
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolreeve.acp.client.profiles import GENERIC, PROFILES, SHELL, WRITE, AgentProfile
from toolreeve.config import Configuration
from toolreeve.config.servers import servers_from_code
from toolreeve.config.table_schemas import ACP_AGENTS
from toolreeve.config.xdg import data_home, expand
from toolreeve.core.call import LOCAL
from toolreeve.core.errors import ConfigError, ToolError, ToolreeveError
from toolreeve.core.schema import Schema
from toolreeve.core.suggest import hint_similar
from toolreeve.upstream.server_spec import ServerSpec

FROM_ENVIRONMENT = "agent"
"""The name of the agent that A2A_AGENT_COMMAND starts."""
_OWN = ("profile", "mode", "hosts", "home", "writable", "readable", "description", "start_timeout", "timeout", "tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """`program` says how it is started, and in which sandbox; `home` is the local user's home for it. `mode` is the
    mode in which it asks for everything. `start_timeout` and `timeout` are the seconds for its handshake and for one
    turn. `gives_tools` offers our tools."""

    name: str
    program: ServerSpec
    profile: AgentProfile
    home: Path
    mode: str
    description: str
    start_timeout: float
    timeout: float
    gives_tools: bool

    def home_of(self, user: str) -> Path:
        """What an agent keeps there of one user, such as conversations and logins, is nothing for another."""
        if user == LOCAL.user:
            return self.home
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", user)[:40]
        return self.home.with_name(f"{self.home.name}@{name}-{hashlib.sha256(user.encode()).hexdigest()[:12]}")

    def program_in(self, home: Path, *readable: str) -> ServerSpec:
        """The program with this home, and further paths that it may read."""
        own = {key: value.replace("{home}", str(home)) for key, value in self.profile.env.items()}
        table = self.program.sandbox or {}
        sandbox = {
            **table,
            "allowed_paths": [str(home), *table["allowed_paths"]],
            "readable_paths": [*table["readable_paths"], *readable],
        }
        return replace(self.program, env={**own, "HOME": str(home), **self.program.env}, sandbox=sandbox)


def read_agents(configuration: Configuration, complain: Callable[[ConfigError], None]) -> Mapping[str, AgentSpec]:
    """Those that can work; `complain` is told about each of the others."""
    found = {}
    for name, table in _tables(configuration).items():
        try:
            found[name] = _read(configuration, name, table)
        except ConfigError as problem:
            complain(problem)
    return found


def find_agent(configuration: Configuration, name: str) -> AgentSpec:
    """Raises ToolreeveError, which lists the agents that are configured."""
    tables = _tables(configuration)
    if name not in tables:
        known = hint_similar(name, tables) or f" (configured: {', '.join(tables) or 'none'})"
        raise ToolreeveError(f"no ACP agent is called {name!r}{known}: add [acp_agents.{name}] to your toolreeve.toml")
    return _read(configuration, name, tables[name])


def _tables(configuration: Configuration) -> Mapping[str, Mapping[str, Any]]:
    tables = dict(configuration.settings.acp_agents)
    if (named := _from_environment(configuration.known.environ)) is not None:
        tables.setdefault(FROM_ENVIRONMENT, named)
    return tables


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any] | None:
    words = shlex.split(environ.get("A2A_AGENT_COMMAND", ""))
    if not words:
        return None
    profile = PROFILES.get(Path(words[0]).name, GENERIC)
    key = environ.get("A2A_AGENT_API_KEY")
    table: dict[str, Any] = {"command": words[0], "args": words[1:]}
    if profile is not GENERIC:
        table["profile"] = Path(words[0]).name
    if description := environ.get("A2A_AGENT_DESCRIPTION"):
        table["description"] = description
    if key:
        table["env"] = {profile.key or "A2A_AGENT_API_KEY": key}
    return table


def _read(configuration: Configuration, name: str, table: Mapping[str, Any]) -> AgentSpec:
    """Raises ConfigError for a table that cannot work."""
    try:
        Schema(ACP_AGENTS).parse({name: table})
    except ToolError as problem:
        origin = configuration.origins.get("acp_agents", "code")
        key = f"acp_agents.{name}"
        raise ConfigError(problem.message, source=origin, key=key, fix="see docs/guides/acp.md") from None
    environ = configuration.known.environ
    profile = PROFILES.get(table.get("profile", name), GENERIC)
    base = Path(configuration.settings.workspace.dir)
    home = Path(expand(table.get("home", str(data_home(environ) / "agents" / name)), base=base, environ=environ))
    program = _read_program(configuration, name, {key: table[key] for key in table if key not in _OWN})
    return AgentSpec(
        name=name,
        program=replace(program, args=program.args or profile.args, sandbox=_sandbox(table, program, profile)),
        profile=profile,
        home=home,
        mode=table.get("mode", profile.mode),
        description=table.get("description", f"The agent {name}, reached over the Agent Client Protocol."),
        start_timeout=table.get("start_timeout", 60.0),
        timeout=table.get("timeout", 1800.0),
        gives_tools=table.get("tools", True),
    )


def _read_program(configuration: Configuration, name: str, table: Mapping[str, Any]) -> ServerSpec:
    origin = configuration.origins.get("acp_agents", "code")
    found = servers_from_code({name: {"type": "stdio", **table}}, configuration.known, base=Path.cwd())
    if found.problems or not found.specs or found.specs[0].command is None:
        why = found.problems[0].problem if found.problems else "it has no command"
        raise ConfigError(why, source=origin, key=f"acp_agents.{name}", fix="name the program in `command`")
    spec = found.specs[0]
    program = shutil.which(spec.command or "", path=configuration.known.environ.get("PATH"))
    if program is None:
        raise ConfigError(
            f"the program {spec.command!r} is not installed",
            source=origin,
            key=f"acp_agents.{name}.command",
            fix="install it, or name its path",
        )
    return replace(spec, command=program, cwd=configuration.settings.workspace.dir, source=origin)


def _sandbox(table: Mapping[str, Any], program: ServerSpec, profile: AgentProfile) -> dict[str, Any]:
    hosts = list(table.get("hosts", ()))
    is_routed = {WRITE, SHELL} <= profile.routes
    return {
        **(program.sandbox or {}),
        "network": "guarded" if hosts else "none",
        "hosts": hosts,
        "workspace": "read" if is_routed else "write",
        "allowed_paths": [*table.get("writable", ())],
        "readable_paths": [*_program_folders(program.command or ""), *table.get("readable", ())],
    }


def _program_folders(program: str) -> Sequence[str]:
    """The folders that a program needs: its own, the packages it lies among, its virtual environment and Python."""
    found: list[Path] = []
    for path in (Path(program), Path(program).resolve()):
        packages = [each for each in path.parents if each.name == "node_modules"][-1:]
        environments = [each for each in path.parents if (each / "pyvenv.cfg").is_file()][:1]
        found += [*packages, *environments, *map(_base_python, environments)] or [path.parent]
    return [str(each) for each in dict.fromkeys(found)]


def _base_python(environment: Path) -> Path:
    """Where the Python is that the environment was made with."""
    lines = (environment / "pyvenv.cfg").read_text().splitlines()
    named = next((line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"), "")
    return Path(named).parent if named else environment
