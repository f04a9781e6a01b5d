"""Which settings hold? Defaults, the user's file, the project's file, the environment, the caller: later wins.

Except that a project's file may only tighten, and that lists of what is forbidden or secret add up.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolreeve.config import xdg
from toolreeve.config.field import ProjectScope
from toolreeve.config.fields import KeyPath, build, leaves, value_at
from toolreeve.config.layers import Given, Layer, read_environment, read_file_layer, read_overrides
from toolreeve.config.mcp_servers.expansion import Expander, Surroundings, Unresolved
from toolreeve.config.mcp_servers.reader import Servers
from toolreeve.config.project import tighten
from toolreeve.config.project_code import ProjectCode, project_code
from toolreeve.config.readable_files import present
from toolreeve.config.secrets import SecretSource, secret_values
from toolreeve.config.servers import WorkspaceServers, configured, read_servers, servers_from_code, surroundings
from toolreeve.config.settings import Settings
from toolreeve.config.trust import TrustedFolders
from toolreeve.core.documents import Document, read_document
from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.upstream.server_spec import ServerSpec

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The effective settings, where each came from by dotted key, and what a person should be told about them.

    `code` is None where the project asks for nothing that needs trust. `docker` is what of the environment tells a
    docker client where it is and whom to ask. `mcp_servers` are the servers to use, those that are turned off included;
    `mcp_problems` is what is wrong with the ones that were left out.
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
    mcp_servers: tuple[ServerSpec, ...] = ()
    mcp_problems: tuple[ConfigError, ...] = ()

    def reveal(self, reference: str, *, key: str) -> str:
        """The credential that a setting such as `${secret:NAME}` refers to. Raises ConfigError."""
        try:
            return Expander(self.known).expand(reference)
        except Unresolved as problem:
            raise ConfigError(str(problem), source=self.origins.get(key, "code"), key=key, fix=problem.fix) from None

    @property
    def governing(self) -> tuple[str, ...]:
        """The files that say what may run, or that run as code themselves: no tool may change them."""
        folder = Path(self.settings.workspace.dir)
        own = (
            self.user_file,
            self.user_file.with_name(xdg.POLICY_FILE),
            self.user_file.with_name(xdg.SECRETS_FILE),
            self.project_file,
            folder / xdg.POLICY_FILE,
            *(folder / name for name in xdg.CLIENT_FILES),
        )
        code = self.code.files if self.code is not None else ()
        named = (*self.settings.policy.files, *self.settings.tool_files, *self.settings.mcp.files)
        return tuple(dict.fromkeys((*map(str, own), *named, *code)))

    @property
    def project_policy(self) -> Path | None:
        """The project's policy file, if it has one; it may only tighten."""
        path = Path(self.settings.workspace.dir) / xdg.POLICY_FILE
        return path if path.is_file() else None


def load(
    overrides: Mapping[str, Any] | None = None,
    *,
    origin: str = "argument",
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Configuration:
    """Look the configuration up. Raises ConfigErrors with everything that is wrong, at once."""
    environ = os.environ if environ is None else environ
    return _Lookup(environ=environ, cwd=cwd or Path.cwd(), overrides=overrides or {}, origin=origin).run()


def from_settings(
    settings: Settings, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Configuration:
    """The configuration of a program that says everything itself: no file and no variable is looked up."""
    environ = os.environ if environ is None else environ
    cwd = cwd or Path.cwd()
    values = {path: leaf.settle(value_at(settings, path), cwd, environ) for path, leaf in leaves().items()}
    if not settings.state.dir:
        values[("state", "dir")] = str(xdg.state_home(environ))
    secrets = SecretSource(environ, xdg.config_home(environ) / xdg.SECRETS_FILE)
    private = secret_values(settings.record.redact_env, environ)
    known = surroundings(environ, secrets, values[("workspace", "dir")], private)
    servers = servers_from_code(settings.mcp_servers, known, base=cwd)
    return Configuration(
        settings=build(values),
        origins={leaf.key: "code" for leaf in leaves().values()},
        notices=_told(servers),
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


def _told(servers: Servers) -> tuple[str, ...]:
    """What a person should know about the servers, the ones that were left out included."""
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
        said = read_overrides(self.overrides, origin=self.origin, complain=complain, cwd=self.cwd, environ=self.environ)
        variables = read_environment(self.environ, complain=complain, cwd=self.cwd)
        user_file = xdg.config_home(self.environ) / xdg.FILE
        user = self._file(user_file)
        own = _merge(self._defaults(user_file), user)
        chosen = _merge(own, variables, said)
        project_file = self._workspace(chosen) / xdg.FILE
        project = {} if project_file == user_file else self._file(project_file)
        shared = self._shared(chosen, project, project_file.parent)
        code = self._code(chosen, project, project_file, shared)
        tightened = tighten(own, project, trusted=code is not None and code.trusted)
        self.problems += tightened.problems
        values = _merge(own, tightened.layer, variables, said)
        self._check_tool_files(values)
        if self.problems:
            raise ConfigErrors(self.problems)
        settings = build({path: given.value for path, given in values.items()})
        secrets = SecretSource(self.environ, user_file.with_name(xdg.SECRETS_FILE))
        private = secret_values(settings.record.redact_env, self.environ)
        known = surroundings(self.environ, secrets, settings.workspace.dir, private)
        own_document, project_document = self.documents.get(user_file), self.documents.get(project_file)
        workspace = WorkspaceServers(
            own=None if project_document is own_document else project_document,
            shared=shared,
            trusted=code is not None and code.trusted,
        )
        self.servers.take(configured(own_document, workspace, settings.mcp.files, known))
        return Configuration(
            settings=settings,
            origins={leaf.key: values[path].origin if path in values else DEFAULT for path, leaf in leaves().items()},
            notices=(*tightened.notices, *_told(self.servers)),
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
        layer: dict[KeyPath, Given] = {
            ("workspace", "dir"): Given(value=str(self.cwd.resolve()), origin=DEFAULT),
            ("state", "dir"): Given(value=str(xdg.state_home(self.environ)), origin=DEFAULT),
        }
        policy = user_file.parent / xdg.POLICY_FILE
        if policy.is_file():
            layer[("policy", "files")] = Given(value=(str(policy),), origin=DEFAULT)
        return layer

    def _file(self, path: Path) -> Layer:
        try:
            if not present(path):
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
            what = "is not a directory" if path.exists() else "does not exist"
            self.problems.append(
                ConfigError(
                    f"{given.value!r} {what}", source=given.origin, key="workspace.dir", fix="name a directory you have"
                )
            )
        return path

    def _shared(self, chosen: Layer, project: Layer, folder: Path) -> Document | None:
        """The workspace's `.mcp.json`, if it has one that is wanted. What is wrong with it stops nothing else."""
        setting = ("mcp", "project_file")
        if any(setting in layer and not layer[setting].value for layer in (chosen, project)):
            return None
        path = folder / xdg.SHARED_FILE
        try:
            return read_servers(path) if present(path) else None
        except ConfigError as problem:
            self.servers.problems.append(problem)
            return None

    def _code(self, chosen: Layer, project: Layer, project_file: Path, shared: Document | None) -> ProjectCode | None:
        try:
            folders = TrustedFolders(Path(chosen[("state", "dir")].value))
            document = self.documents.get(project_file)
            return project_code(project, document, project_file, shared, folders, self.environ)
        except ConfigError as problem:
            self.problems.append(problem)
            return None

    def _check_tool_files(self, values: Layer) -> None:
        given = values.get(("tool_files",))
        for name in given.value if given else ():
            if not name.endswith((".py", ".yaml", ".yml")):
                self.problems.append(
                    ConfigError(
                        f"{name!r} is neither a Python nor a YAML file",
                        source=given.origin if given else "",
                        key="tool_files",
                        fix="name .py, .yaml or .yml files",
                    )
                )


def _for_docker(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name in ("PATH", "HOME") or name.startswith("DOCKER_")}


def _merge(*layers: Layer) -> Layer:
    merged: dict[KeyPath, Given] = {}
    for layer in layers:
        for path, given in layer.items():
            before = merged.get(path)
            if before is not None and leaves()[path].about.project is ProjectScope.ADD:
                together = tuple(dict.fromkeys((*before.value, *given.value)))
                origin = given.origin if before.value == () else f"{before.origin}, {given.origin}"
                merged[path] = Given(value=together, origin=origin)
            else:
                merged[path] = given
    return merged
