"""The connectors: their tools, the secrets they need, and where they live.

Plain data: the module of a connector is imported only when one of its tools is registered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module

from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.core.tool import AnyFunctionTool
from toolreeve.core.urls import parse_url

FindSecret = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUrls:
    """The addresses of the services, from the operator's configuration."""

    gmail: str
    calendar: str
    google_login: str
    google_oauth: str
    anthropic: str
    github: str
    linkedin: str

    def check(self) -> None:
        """Raises ConfigError: tokens and mail travel unencrypted only within this machine."""
        for name in self.__slots__:
            key = f"connectors.{name}_url"
            try:
                target = parse_url(getattr(self, name))
            except ToolError as problem:
                raise ConfigError(problem.message, source="configuration", key=key) from None
            if target.scheme != "https" and not (target.address and target.address.is_loopback):
                fix = "write an https:// address"
                raise ConfigError("would send credentials unencrypted", source="configuration", key=key, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConnector:
    """`module` has `new_tools(urls)`. An `opt_in` connector is used only if `connectors.enabled` names it. `login`
    is the command that connects the account, `note` what a user must know who enables it."""

    name: str
    module: str
    tools: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    opt_in: bool = False
    login: str = ""
    note: str = ""

    def new_tools(self, urls: ServiceUrls) -> Sequence[AnyFunctionTool]:
        urls.check()
        made: Sequence[AnyFunctionTool] = import_module(self.module).new_tools(urls)
        return made


GOOGLE_CLIENT = ("GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET")
GOOGLE_LOGIN = "toolreeve auth google"
CONNECTORS = (
    ServiceConnector(
        name="gmail",
        module="toolreeve.connectors.gmail",
        tools=("gmail_search", "gmail_read", "gmail_send"),
        secrets=GOOGLE_CLIENT,
        login=GOOGLE_LOGIN,
    ),
    ServiceConnector(
        name="calendar",
        module="toolreeve.connectors.calendar",
        tools=("calendar_list_events", "calendar_get_event", "calendar_create_event"),
        secrets=GOOGLE_CLIENT,
        login=GOOGLE_LOGIN,
    ),
    ServiceConnector(
        name="anthropic",
        module="toolreeve.connectors.anthropic_usage",
        tools=("anthropic_usage",),
        secrets=("ANTHROPIC_ADMIN_KEY",),
    ),
    ServiceConnector(
        name="github",
        module="toolreeve.connectors.github",
        tools=("github_list_issues", "github_read_issue", "github_comment"),
        secrets=("GITHUB_TOKEN",),
        opt_in=True,
    ),
    ServiceConnector(
        name="linkedin",
        module="toolreeve.connectors.linkedin",
        tools=("linkedin_jobs", "linkedin_job_detail"),
        opt_in=True,
        note="LinkedIn's terms of service restrict automated access: check that you may use these tools",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnavailableTool:
    """A tool that is not registered, what it lacks, and the commands that add it."""

    name: str
    lacks: str
    commands: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The tools to register, by connector, and the others."""

    chosen: tuple[tuple[ServiceConnector, tuple[str, ...]], ...]
    unavailable: tuple[UnavailableTool, ...]

    def new_tools(self, urls: ServiceUrls) -> Sequence[AnyFunctionTool]:
        """Raises ConfigError for an address that cannot be used."""
        return [tool for connector, names in self.chosen for tool in connector.new_tools(urls) if tool.name in names]


def select(enabled: Sequence[str], find: FindSecret, find_cheaply: FindSecret) -> Selection:
    """`find_cheaply` opens no keyring: for connectors that nobody asked for. Raises ConfigError for a pattern of
    `connectors.enabled` that names no tool."""
    _check(enabled)
    chosen: list[tuple[ServiceConnector, tuple[str, ...]]] = []
    unavailable: list[UnavailableTool] = []
    for connector in CONNECTORS:
        wanted = _wanted(connector, enabled)
        look_up = find if enabled and wanted else find_cheaply
        missing = [name for name in connector.secrets if look_up(name) is None]
        usable = () if missing else wanted
        if usable:
            chosen.append((connector, usable))
        unavailable += [
            _describe(connector, name, name in wanted, missing) for name in connector.tools if name not in usable
        ]
    return Selection(chosen=tuple(chosen), unavailable=tuple(unavailable))


def _wanted(connector: ServiceConnector, enabled: Sequence[str]) -> tuple[str, ...]:
    if not enabled:
        return () if connector.opt_in else connector.tools
    return tuple(name for name in connector.tools if any(fnmatchcase(name, pattern) for pattern in enabled))


def _describe(connector: ServiceConnector, name: str, is_wanted: bool, missing: Sequence[str]) -> UnavailableTool:  # noqa: FBT001
    lacks = []
    if not is_wanted:
        lacks.append(f'"{name}" in connectors.enabled')
    if missing:
        lacks.append(f"the secret{'s' if len(missing) > 1 else ''} {' and '.join(missing)}")
    commands = [f"toolreeve secrets set {each}" for each in missing]
    if missing and connector.login:
        commands.append(connector.login)
    return UnavailableTool(name=name, lacks=" and ".join(lacks), commands=tuple(commands), note=connector.note)


def _check(enabled: Sequence[str]) -> None:
    known = [name for connector in CONNECTORS for name in connector.tools]
    for pattern in enabled:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ConfigError(
                f"{pattern!r} names no connector tool; known are {', '.join(known)}",
                source="configuration",
                key="connectors.enabled",
            )
