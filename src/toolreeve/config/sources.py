"""Loads the configuration: defaults, user file, project file, environment, overrides.

Later sources win, except that a project's file may only tighten, and that lists of what is forbidden or secret add up.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.config import xdg
from toolreeve.config.field import ProjectScope
from toolreeve.config.fields import KeyPath, build, setting_fields, value_at
from toolreeve.config.layers import Layer, SourcedValue, read_environment, read_file_layer, read_overrides
from toolreeve.config.mcp_servers.expansion import Expander, Surroundings, Unresolved
from toolreeve.config.mcp_servers.server_list import Servers
from toolreeve.config.project import tighten
from toolreeve.config.project_code import ProjectCode, project_code
from toolreeve.config.readable_files import is_readable_file
from toolreeve.config.secrets import SecretSource, secret_values
from toolreeve.config.servers import (
    WorkspaceServers,
    read_configured_servers,
    read_servers,
    servers_from_code,
    surroundings,
)
from toolreeve.config.settings import Settings
from toolreeve.config.trust import TrustedFolders
from toolreeve.core.documents import Document, read_document
from toolreeve.core.errors import ConfigError, ConfigErrors

if TYPE_CHECKING:
    from toolreeve.upstream.server_spec import ServerSpec

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Configuration:
    """The effective settings, their origins by dotted key, and notices for the user.

    `code` is None if the project has nothing that needs trust. `docker` holds the environment variables of the docker
    client. `mcp_servers` are the servers to use, disabled ones included; `mcp_problems` tells why others are left out.
    """

    settings: Settings
    origins: Mapping[str, str]
    notices: tuple[str, ...]
    user_file: Path
    project_file: Path
    code: ProjectCode | None
    home: str
    docker: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    secret_source: SecretSource = field(repr=False)
    known: Surroundings = field(repr=False)
    mcp_servers: "tuple[ServerSpec, ...]" = ()
    mcp_problems: tuple[ConfigError, ...] = ()

    def __repr__(self) -> str:
        return f"<Configuration of {self.settings.workspace.dir}: {len(self.mcp_servers)} MCP servers>"

    def reveal(self, reference: str, *, key: str) -> str:
        """The credential that a setting such as `${secret:NAME}` refers to. Raises ConfigError."""
        try:
            return Expander(self.known).expand(reference)
        except Unresolved as problem:
            raise ConfigError(str(problem), source=self.origins.get(key, "code"), key=key, fix=problem.fix) from None

    @property
    def governing(self) -> tuple[str, ...]:
        """The files that decide what may run, or that run as code themselves: no tool may change them."""
        folder = Path(self.settings.workspace.dir)
        own = (
            self.user_file,
            self.user_file.with_name(xdg.POLICY_FILE),
            self.user_file.with_name(xdg.SECRETS_FILE),
            *(self.user_file.with_name(name) for name in xdg.APPROVAL_FILES.values()),
            self.project_file,
            folder / xdg.POLICY_FILE,
            *(folder / name for name in xdg.CLIENT_FILES),
        )
        code = self.code.files if self.code is not None else ()
        approval = self.settings.approval
        automatic = filter(None, (approval.auto_approval_file, approval.governors_file))
        named = (*self.settings.policy.files, *self.settings.tool_files, *self.settings.mcp.files, *automatic)
        return tuple(dict.fromkeys((*map(str, own), *named, *code)))

    @property
    def project_policy(self) -> Path | None:
        """The project's policy file, if any; it may only tighten."""
        path = Path(self.settings.workspace.dir) / xdg.POLICY_FILE
        return path if path.is_file() else None


def load(
    overrides: Mapping[str, Any] | None = None,
    *,
    origin: str = "argument",
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Configuration:
    """Load the configuration. Raises ConfigErrors with all problems at once."""
    environ = os.environ if environ is None else environ
    return _Lookup(environ=environ, cwd=cwd or Path.cwd(), overrides=overrides or {}, origin=origin).run()


def from_settings(
    settings: Settings, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Configuration:
    """The configuration of a program that passes all settings itself: no file and no variable is read."""
    environ = os.environ if environ is None else environ
    cwd = cwd or Path.cwd()
    values = {
        path: setting.normalize(value_at(settings, path), cwd, environ) for path, setting in setting_fields().items()
    }
    if not settings.state.dir:
        values[("state", "dir")] = str(xdg.state_home(environ))
    secrets = SecretSource(environ, xdg.config_home(environ) / xdg.SECRETS_FILE, settings.secrets.store)
    private = secret_values(settings.record.redact_env, environ)
    known = surroundings(environ, secrets, values[("workspace", "dir")], private)
    servers = servers_from_code(_servers_of(settings), known, base=cwd)
    return Configuration(
        settings=build(values),
        origins={setting.key: "code" for setting in setting_fields().values()},
        notices=_server_notices(servers),
        user_file=xdg.config_home(environ) / xdg.FILE,
        project_file=Path(values[("workspace", "dir")]) / xdg.FILE,
        code=None,
        home=xdg.home(environ),
        docker=_for_docker(environ),
        secrets=private,
        secret_source=secrets,
        known=known,
        mcp_servers=tuple(servers.specs),
        mcp_problems=tuple(servers.problems),
    )


def _servers_of(settings: Settings) -> Any:
    if not settings.a2a_agents:
        return settings.mcp_servers
    return {"mcp_servers": settings.mcp_servers, "a2a_agents": settings.a2a_agents}


def _server_notices(servers: Servers) -> tuple[str, ...]:
    return (*servers.notices, *map(str, servers.problems))


@dataclass(slots=True, kw_only=True)
class _Lookup:
    environ: Mapping[str, str]
    cwd: Path
    overrides: Mapping[str, Any]
    origin: str
    problems: list[ConfigError] = field(default_factory=list)
    documents: dict[Path, Document] = field(default_factory=dict)
    servers: Servers = field(default_factory=Servers)

    def run(self) -> Configuration:
        complain = self.problems.append
        overrides = read_overrides(
            self.overrides, origin=self.origin, complain=complain, cwd=self.cwd, environ=self.environ
        )
        variables = read_environment(self.environ, complain=complain, cwd=self.cwd)
        user_file = xdg.config_home(self.environ) / xdg.FILE
        own = _merge(self._defaults(user_file), self._read_file(user_file))
        chosen = _merge(own, variables, overrides)
        project_file = self._workspace(chosen) / xdg.FILE
        project = {} if project_file == user_file else self._read_file(project_file)
        shared = self._read_shared(chosen, project, project_file.parent)
        code = self._project_code(chosen, project, project_file, shared)
        is_trusted = code is not None and code.trusted
        tightened = tighten(own, project, trusted=is_trusted)
        self.problems += tightened.problems
        values = _merge(own, tightened.layer, variables, overrides)
        self._check_tool_files(values)
        if self.problems:
            raise ConfigErrors(self.problems)
        settings = build({path: given.value for path, given in values.items()})
        secrets = SecretSource(self.environ, user_file.with_name(xdg.SECRETS_FILE), settings.secrets.store)
        private = secret_values(settings.record.redact_env, self.environ)
        known = surroundings(self.environ, secrets, settings.workspace.dir, private)
        own_document = self.documents.get(user_file)
        project_document = self.documents.get(project_file)
        workspace = WorkspaceServers(
            own=None if project_document is own_document else project_document,
            shared=shared,
            trusted=is_trusted,
        )
        self.servers.take(read_configured_servers(own_document, workspace, settings.mcp.files, known))
        return Configuration(
            settings=settings,
            origins={
                setting.key: values[path].origin if path in values else DEFAULT
                for path, setting in setting_fields().items()
            },
            notices=(*tightened.notices, *_server_notices(self.servers)),
            user_file=user_file,
            project_file=project_file,
            code=code,
            home=xdg.home(self.environ),
            docker=_for_docker(self.environ),
            secrets=private,
            secret_source=secrets,
            known=known,
            mcp_servers=tuple(self.servers.specs),
            mcp_problems=tuple(self.servers.problems),
        )

    def _defaults(self, user_file: Path) -> Layer:
        """The defaults that depend on the user and the current directory."""
        layer: dict[KeyPath, SourcedValue] = {
            ("workspace", "dir"): SourcedValue(value=str(self.cwd.resolve()), origin=DEFAULT),
            ("state", "dir"): SourcedValue(value=str(xdg.state_home(self.environ)), origin=DEFAULT),
        }
        policy = user_file.parent / xdg.POLICY_FILE
        if policy.is_file():
            layer[("policy", "files")] = SourcedValue(value=(str(policy),), origin=DEFAULT)
        for key, name in xdg.APPROVAL_FILES.items():
            if (path := user_file.parent / name).is_file():
                layer[("approval", key)] = SourcedValue(value=str(path), origin=DEFAULT)
        return layer

    def _read_file(self, path: Path) -> Layer:
        try:
            if not is_readable_file(path):
                return {}
            document = self.documents[path] = read_document(path)
        except ConfigError as problem:
            self.problems.append(problem)
            return {}
        return read_file_layer(document, complain=self.problems.append, environ=self.environ)

    def _workspace(self, chosen: Layer) -> Path:
        given = chosen[("workspace", "dir")]
        path = Path(given.value)
        if not path.is_dir():
            problem = f"{given.value!r} is not a directory" if path.exists() else f"{given.value!r} does not exist"
            fix = "name an existing directory"
            self.problems.append(ConfigError(problem, source=given.origin, key="workspace.dir", fix=fix))
        return path

    def _read_shared(self, chosen: Layer, project: Layer, folder: Path) -> Document | None:
        """The workspace's `.mcp.json`, unless `mcp.project_file` is off. Its errors affect nothing else."""
        setting = ("mcp", "project_file")
        if any(setting in layer and not layer[setting].value for layer in (chosen, project)):
            return None
        path = folder / xdg.SHARED_FILE
        try:
            return read_servers(path) if is_readable_file(path) else None
        except ConfigError as problem:
            self.servers.problems.append(problem)
            return None

    def _project_code(
        self, chosen: Layer, project: Layer, project_file: Path, shared: Document | None
    ) -> ProjectCode | None:
        try:
            folders = TrustedFolders(Path(chosen[("state", "dir")].value))
            document = self.documents.get(project_file)
            return project_code(project, document, project_file, shared, folders, self.environ)
        except ConfigError as problem:
            self.problems.append(problem)
            return None

    def _check_tool_files(self, values: Layer) -> None:
        given = values.get(("tool_files",))
        if given is None:
            return
        for name in given.value:
            if not name.endswith((".py", ".yaml", ".yml")):
                problem = f"{name!r} is neither a Python nor a YAML file"
                fix = "name .py, .yaml or .yml files"
                self.problems.append(ConfigError(problem, source=given.origin, key="tool_files", fix=fix))


def _for_docker(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name in ("PATH", "HOME") or name.startswith("DOCKER_")}


def _merge(*layers: Layer) -> Layer:
    merged: dict[KeyPath, SourcedValue] = {}
    for layer in layers:
        for path, given in layer.items():
            before = merged.get(path)
            if before is not None and setting_fields()[path].field.project is ProjectScope.ADD:
                combined = tuple(dict.fromkeys((*before.value, *given.value)))
                origin = given.origin if before.value == () else f"{before.origin}, {given.origin}"
                merged[path] = SourcedValue(value=combined, origin=origin)
            else:
                merged[path] = given
    return merged
