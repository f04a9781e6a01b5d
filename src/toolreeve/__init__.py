"""Toolreeve: the tool runtime for AI agents.

Started with `python -m`, it imports nothing from the current directory: that is the workspace, and its files are not
ours. `safe_path` enforces this and must be imported before anything else.
"""

from toolreeve import safe_path as _safe_path  # isort: skip  # noqa: F401

TYPE_CHECKING = False  # as of `typing`, whose import takes long for a hook
if TYPE_CHECKING:
    from toolreeve.agent.base_agent import BaseAgent as BaseAgent
    from toolreeve.agent.config import BaseAgentConfig as BaseAgentConfig
    from toolreeve.agent.control.protocol import ControlProtocol as ControlProtocol
    from toolreeve.agent.runs import AgentResult as AgentResult
    from toolreeve.agent.signature import InputField as InputField
    from toolreeve.agent.signature import OutputField as OutputField
    from toolreeve.agent.signature import Signature as Signature
    from toolreeve.approval.channels.terminal import TerminalChannel as TerminalChannel
    from toolreeve.approval.request import Answer as Answer
    from toolreeve.approval.request import Request as Request
    from toolreeve.approval.request import Scope as Scope
    from toolreeve.config.settings import Settings as Settings
    from toolreeve.core.call import Principal as Principal
    from toolreeve.core.call import Role as Role
    from toolreeve.core.call import ToolCall as ToolCall
    from toolreeve.core.context import Context as Context
    from toolreeve.core.danger import DangerLevel as DangerLevel
    from toolreeve.core.effects import Effect as Effect
    from toolreeve.core.effects import EffectKind as EffectKind
    from toolreeve.core.errors import ConfigError as ConfigError
    from toolreeve.core.errors import ErrorCode as ErrorCode
    from toolreeve.core.errors import ToolError as ToolError
    from toolreeve.core.errors import ToolreeveError as ToolreeveError
    from toolreeve.core.limits import Caching as Caching
    from toolreeve.core.limits import CircuitBreaker as CircuitBreaker
    from toolreeve.core.limits import RateLimit as RateLimit
    from toolreeve.core.limits import Retry as Retry
    from toolreeve.core.result import Failed as Failed
    from toolreeve.core.result import Succeeded as Succeeded
    from toolreeve.core.result import ToolResult as ToolResult
    from toolreeve.core.tool import Tool as Tool
    from toolreeve.core.tool import mcp_tool as mcp_tool
    from toolreeve.core.tool import tool as tool
    from toolreeve.formats.mcp_tools import convert_mcp_to_openai_tools as convert_mcp_to_openai_tools
    from toolreeve.formats.mcp_tools import get_tools_for_provider as get_tools_for_provider
    from toolreeve.permissions import ApprovalManager as ApprovalManager
    from toolreeve.permissions import ExecutionContext as ExecutionContext
    from toolreeve.permissions import PermissionMode as PermissionMode
    from toolreeve.permissions import PermissionPolicy as PermissionPolicy
    from toolreeve.permissions import PermissionRule as PermissionRule
    from toolreeve.policy.known_tools import TOOL_DANGER_LEVELS as TOOL_DANGER_LEVELS
    from toolreeve.policy.known_tools import get_tool_danger_level as get_tool_danger_level
    from toolreeve.policy.known_tools import is_tool_safe as is_tool_safe
    from toolreeve.policy.known_tools import requires_approval as requires_approval
    from toolreeve.registry import ToolRegistry as ToolRegistry
    from toolreeve.runtime.builtin import BuiltinTools
    from toolreeve.runtime.sync import SyncToolreeve as SyncToolreeve
    from toolreeve.runtime.toolreeve import Toolreeve as Toolreeve

    BUILTIN_TOOLS: BuiltinTools
    __version__: str

_HOMES = {
    "AgentResult": "toolreeve.agent.runs",
    "Answer": "toolreeve.approval.request",
    "ApprovalManager": "toolreeve.permissions",
    "BUILTIN_TOOLS": "toolreeve.runtime.sync",
    "BaseAgent": "toolreeve.agent.base_agent",
    "BaseAgentConfig": "toolreeve.agent.config",
    "Caching": "toolreeve.core.limits",
    "CircuitBreaker": "toolreeve.core.limits",
    "ConfigError": "toolreeve.core.errors",
    "Context": "toolreeve.core.context",
    "ControlProtocol": "toolreeve.agent.control.protocol",
    "DangerLevel": "toolreeve.core.danger",
    "Effect": "toolreeve.core.effects",
    "EffectKind": "toolreeve.core.effects",
    "ErrorCode": "toolreeve.core.errors",
    "ExecutionContext": "toolreeve.permissions",
    "Failed": "toolreeve.core.result",
    "InputField": "toolreeve.agent.signature",
    "OutputField": "toolreeve.agent.signature",
    "PermissionMode": "toolreeve.permissions",
    "PermissionPolicy": "toolreeve.permissions",
    "PermissionRule": "toolreeve.permissions",
    "Principal": "toolreeve.core.call",
    "RateLimit": "toolreeve.core.limits",
    "Request": "toolreeve.approval.request",
    "Retry": "toolreeve.core.limits",
    "Role": "toolreeve.core.call",
    "Scope": "toolreeve.approval.request",
    "Settings": "toolreeve.config.settings",
    "Signature": "toolreeve.agent.signature",
    "Succeeded": "toolreeve.core.result",
    "SyncToolreeve": "toolreeve.runtime.sync",
    "TerminalChannel": "toolreeve.approval.channels.terminal",
    "TOOL_DANGER_LEVELS": "toolreeve.policy.known_tools",
    "Tool": "toolreeve.core.tool",
    "ToolCall": "toolreeve.core.call",
    "ToolError": "toolreeve.core.errors",
    "ToolRegistry": "toolreeve.registry",
    "ToolResult": "toolreeve.core.result",
    "Toolreeve": "toolreeve.runtime.toolreeve",
    "ToolreeveError": "toolreeve.core.errors",
    "convert_mcp_to_openai_tools": "toolreeve.formats.mcp_tools",
    "get_tool_danger_level": "toolreeve.policy.known_tools",
    "get_tools_for_provider": "toolreeve.formats.mcp_tools",
    "is_tool_safe": "toolreeve.policy.known_tools",
    "mcp_tool": "toolreeve.core.tool",
    "requires_approval": "toolreeve.policy.known_tools",
    "tool": "toolreeve.core.tool",
}
__all__ = sorted(_HOMES)


if not TYPE_CHECKING:  # a type checker would otherwise accept every name

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used, so that `toolreeve --help` need not import the runtime."""
        if name == "__version__":
            from toolreeve.core.version import VERSION

            return VERSION
        if name not in _HOMES:
            raise AttributeError(f"module 'toolreeve' has no attribute {name!r}")
        value = getattr(_import(_HOMES[name]), name)
        globals()[name] = value
        return value

    def _import(module: str) -> object:
        """Without collecting garbage meanwhile: what an import makes stays, and looking through it takes a while."""
        import gc
        from importlib import import_module

        collects = gc.isenabled()
        gc.disable()
        try:
            return import_module(module)
        finally:
            if collects:
                gc.enable()
