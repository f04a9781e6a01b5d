"""Configuration: files, environment and flags, merged into one `Settings` tree."""

from toolreeve.config.sections.a2a import A2a
from toolreeve.config.sections.approval import Approval
from toolreeve.config.sections.commands import Commands
from toolreeve.config.sections.connectors import Connectors
from toolreeve.config.sections.hooks import Hooks
from toolreeve.config.sections.limits import Limits
from toolreeve.config.sections.mcp import Mcp
from toolreeve.config.sections.network import Network
from toolreeve.config.sections.policy import Policy
from toolreeve.config.sections.principal import LocalUser
from toolreeve.config.sections.quality import Quality
from toolreeve.config.sections.record import Record
from toolreeve.config.sections.sandbox import Sandbox
from toolreeve.config.sections.secrets import Secrets
from toolreeve.config.sections.serve import Serve
from toolreeve.config.sections.state import State
from toolreeve.config.sections.trial import Trial
from toolreeve.config.sections.workers import Workers
from toolreeve.config.sections.workspace import Workspace
from toolreeve.config.settings import Settings
from toolreeve.config.sources import Configuration, from_settings, load

__all__ = [
    "A2a",
    "Approval",
    "Commands",
    "Configuration",
    "Connectors",
    "Hooks",
    "Limits",
    "LocalUser",
    "Mcp",
    "Network",
    "Policy",
    "Quality",
    "Record",
    "Sandbox",
    "Secrets",
    "Serve",
    "Settings",
    "State",
    "Trial",
    "Workers",
    "Workspace",
    "from_settings",
    "load",
]
