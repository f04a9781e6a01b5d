"""The arguments of `Toolreeve(…)`, joined with the configuration.

What the program does not pass is read from the configuration; a configuration that is passed whole is mixed with
nothing else.
"""

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.config import Configuration, Settings, from_settings, load
from toolreeve.config.servers import servers_from_code
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.core.tool import AnyFunctionTool
from toolreeve.core.toolset import check_toolset, read_toolset
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import Resolver
from toolreeve.permissions import PermissionPolicy
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.builtin import TOOLS
from toolreeve.runtime.connectors import select_connectors, service_urls
from toolreeve.runtime.processes import (
    command_rules,
    describe_surroundings,
)
from toolreeve.runtime.shell_tools import with_analysis
from toolreeve.scripted.catalogue import Catalogue
from toolreeve.scripted.python_files import load_tools

if TYPE_CHECKING:
    from toolreeve.upstream.server_spec import ServerSpec

logger = logging.getLogger(__name__)

McpServers = Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path
Policy = PermissionPolicy | Sequence[PermissionRule]


def new_configuration(
    settings: Settings | Configuration | None,
    workspace: str | Path | None,
    mode: PermissionMode | str | None,
    tool_files: Iterable[str | Path],
) -> Configuration:
    if isinstance(settings, Configuration):
        return settings
    overrides = {
        "workspace.dir": None if workspace is None else str(workspace),
        "policy.mode": mode.value if isinstance(mode, PermissionMode) else mode,
        "tool_files": tuple(map(str, tool_files)) or None,
    }
    if settings is None:
        return load(overrides)
    if any(value is not None for value in overrides.values()):
        raise ToolreeveError("pass either `settings`, or workspace, mode and tool_files; not both")
    return from_settings(settings)


def check_workspace(configuration: Configuration) -> None:
    """Raises ConfigError if no workspace is set and the current directory is `/`: some clients start their servers
    there, and none of them means that tools may read the whole machine."""
    folder = Path(configuration.settings.workspace.dir)
    if configuration.origins["workspace.dir"] == "default" and folder == folder.parent:
        raise ConfigError(
            f"started in {str(folder)!r}: the whole file system cannot be the workspace",
            source="current directory",
            key="workspace.dir",
            fix=f"pass --workspace DIR, or set workspace.dir in {configuration.user_file}",
        )


def new_registry(
    configuration: Configuration, tools: Iterable[Any], *, builtin: bool | str | Sequence[str] = True
) -> ToolRegistry:
    """The chosen builtin tools, those of the configured Python files, and those that the program passed."""
    rules = command_rules(configuration)
    chosen = with_analysis(
        _choose(builtin=builtin),
        root=configuration.settings.workspace.dir,
        home=configuration.home,
        quality=rules.quality,
        allowed=configuration.settings.workspace.sensitive_allow,
    )
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise ToolreeveError(
            f"tools={tools!r:.100}: pass a list of tools, such as [{getattr(tools, 'name', 'my_tool')}]"
        )
    files = [Path(name) for name in configuration.settings.tool_files if name.endswith(".py")]
    found = [tool for path in files for tool in load_tools(path)]
    connected = select_connectors(configuration).new_tools(service_urls(configuration)) if builtin is True else ()
    own = (_with_surroundings(each, configuration) for each in chosen)
    return ToolRegistry([*own, *connected, *found, *tools])


def _with_surroundings(tool: AnyFunctionTool, configuration: Configuration) -> AnyFunctionTool:
    """`bash` and `execute_command` with a description that says what their commands have."""
    if tool.spec.category != "shell":
        return tool
    description = f"{tool.spec.description} {describe_surroundings(configuration)}"
    return replace(tool, spec=replace(tool.spec, description=description))


def _choose(*, builtin: bool | str | Sequence[str]) -> Sequence[AnyFunctionTool]:
    if builtin is True:
        return TOOLS
    if not builtin:
        return ()
    if not isinstance(builtin, str | Sequence):
        raise ToolreeveError(f"builtin={builtin!r:.100}: pass True, False, or a toolset such as ['file']")
    toolset = read_toolset(builtin)
    check_toolset(toolset, [each.spec for each in TOOLS])
    return [each for each in TOOLS if toolset.includes(each.spec)]


def new_catalogue(configuration: Configuration, registry: ToolRegistry) -> Catalogue:
    return Catalogue(
        configuration.settings.tool_files,
        registry,
        profile=configuration.settings.error_profile,
        secret=configuration.secret_source.find,
        trusted=configuration.code.files if configuration.code is not None else (),
    )


def builtin_server_names(mcp_servers: McpServers | None) -> frozenset[str]:
    """The names that a program gives to the builtin tools among its servers."""
    if mcp_servers is None or isinstance(mcp_servers, str | Path):
        return frozenset()
    tables = (
        mcp_servers.items() if isinstance(mcp_servers, Mapping) else [(each.get("name"), each) for each in mcp_servers]
    )
    return frozenset(str(name) for name, table in tables if isinstance(table, Mapping) and _is_builtin(table))


def _is_builtin(table: Mapping[str, Any]) -> bool:
    transport = table.get("transport")
    return table.get("type") == "builtin" or (isinstance(transport, Mapping) and transport.get("type") == "builtin")


def new_servers(
    configuration: Configuration, mcp_servers: McpServers | None
) -> "tuple[Sequence[ServerSpec], Sequence[ConfigError]]":
    """The servers, and the errors of those that are left out, which are also issued as warnings."""
    if mcp_servers is None:
        return configuration.mcp_servers, ()
    found = servers_from_code(mcp_servers, configuration.known, base=Path.cwd())
    for problem in found.problems:
        warnings.warn(f"an MCP server is left out: {problem}", stacklevel=3)
    return tuple(found.specs), tuple(found.problems)


def new_network_guard(configuration: Configuration, resolver: Resolver | None = None) -> NetworkGuard:
    """Raises ConfigError with the origin of an invalid rule."""
    network = configuration.settings.network
    settings = NetworkSettings(
        allow=network.allow,
        deny=network.deny,
        timeout=network.timeout,
        proxy=network.proxy,
        ca_file=network.ca_file,
    )
    try:
        return NetworkGuard(settings, resolver)
    except ConfigError as problem:
        origin = configuration.origins.get(problem.key, problem.source)
        raise ConfigError(problem.problem, source=origin, key=problem.key, fix=problem.fix) from None
