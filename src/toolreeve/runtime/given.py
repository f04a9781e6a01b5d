"""What did the program give its runtime? Each argument, made into the part that the runtime is built of.

What was not given is looked up in the configuration. A configuration that was given whole is mixed with nothing else.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolreeve.approval.channel import Channel
from toolreeve.approval.channels.callback import CallbackChannel
from toolreeve.config import Configuration, Settings, from_settings, load
from toolreeve.config.servers import servers_from_code
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.permissions import PermissionPolicy
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.builtin import TOOLS
from toolreeve.runtime.processes import command_rules
from toolreeve.runtime.shell_tools import knowing
from toolreeve.scripted.catalogue import Catalogue
from toolreeve.scripted.python_files import load_tools
from toolreeve.upstream.server_spec import ServerSpec

Approve = Callable[..., Any] | Channel | Sequence[Channel]
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
    named = {
        "workspace.dir": None if workspace is None else str(workspace),
        "policy.mode": mode.value if isinstance(mode, PermissionMode) else mode,
        "tool_files": tuple(map(str, tool_files)) or None,
    }
    if settings is None:
        return load(named)
    if any(value is not None for value in named.values()):
        raise ToolreeveError("pass either `settings`, or workspace, mode and tool_files; not both")
    return from_settings(settings)


def new_registry(configuration: Configuration, tools: Iterable[Any]) -> ToolRegistry:
    """The builtin tools, those of the configured Python files, and those that were given."""
    files = configuration.settings.tool_files
    found = [bound for path in files if path.endswith(".py") for bound in load_tools(Path(path))]
    workspace = configuration.settings.workspace
    builtin = knowing(
        TOOLS,
        root=workspace.dir,
        home=configuration.home,
        quality=command_rules(configuration).quality,
        allowed=workspace.sensitive_allow,
    )
    return ToolRegistry([*builtin, *found, *tools])


def new_catalogue(configuration: Configuration, registry: ToolRegistry) -> Catalogue:
    return Catalogue(
        configuration.settings.tool_files,
        registry,
        profile=configuration.settings.error_profile,
        secret=configuration.secret_source.find,
        trusted=configuration.code.files if configuration.code is not None else (),
    )


def channels_of(approve: Approve | None) -> Sequence[Channel]:
    if approve is None:
        return ()
    if isinstance(approve, Sequence):
        return approve
    return (approve,) if isinstance(approve, Channel) else (CallbackChannel(approve),)


def servers_of(
    configuration: Configuration, given: McpServers | None
) -> tuple[Sequence[ServerSpec], Sequence[ConfigError]]:
    """The servers, and what is wrong with those that are left out: whoever makes the runtime is warned of them."""
    if given is None:
        return configuration.mcp_servers, ()
    found = servers_from_code(given, configuration.known, base=Path.cwd())
    for problem in found.problems:
        warnings.warn(f"a server is left out: {problem}", stacklevel=3)
    return tuple(found.specs), tuple(found.problems)
