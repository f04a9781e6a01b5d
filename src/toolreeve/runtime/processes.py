"""Builds the sandbox that the settings choose, for the configured workspace."""

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolreeve.config import Configuration, Quality
from toolreeve.config.guard_table import guard_table
from toolreeve.config.toolchains import ensure_home, find_toolchains
from toolreeve.core import git_config
from toolreeve.core.command_settings import CommandRules
from toolreeve.core.guarded_paths import is_within
from toolreeve.core.process import Ended, OnOutput, Processes, ProcessRequest
from toolreeve.core.trial import Confinement, Layer

if TYPE_CHECKING:
    from toolreeve.policy.rules import Matcher, PermissionRule
    from toolreeve.sandbox.layout import Layout
    from toolreeve.sandbox.sandbox import Serve


class ClosableProcesses(Processes, Protocol):
    """Runs programs until the runtime closes it."""

    async def confinements(self) -> frozenset[Confinement]:
        """Those that are enforced here. Found out once."""

    @property
    def hides_unread(self) -> bool:
        """Whether what rules keep from being read is hidden from commands that nobody approved."""

    def end_trial(self, call: str) -> Sequence[Layer]: ...

    async def close(self) -> None: ...


class DeferredProcesses:
    """Builds the backend for its first program: a runtime that starts none does not load it. `running` counts the
    programs that run."""

    def __init__(self, build: Callable[[], ClosableProcesses]) -> None:
        self._build = build
        self._backend: ClosableProcesses | None = None
        self.running = 0

    def backend(self) -> ClosableProcesses:
        if self._backend is None:
            self._backend = self._build()
        return self._backend

    async def confinements(self) -> frozenset[Confinement]:
        return await self.backend().confinements()

    @property
    def hides_unread(self) -> bool:
        return self.backend().hides_unread

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        self.running += 1
        try:
            return await self.backend().run(request, on_output)
        finally:
            self.running -= 1

    def end_trial(self, call: str) -> Sequence[Layer]:
        return () if self._backend is None else self._backend.end_trial(call)

    async def close(self) -> None:
        if self._backend is not None:
            await self._backend.close()


def new_processes(
    configuration: Configuration, serve: "Serve | None" = None, unread: Callable[[str], bool] | None = None
) -> ClosableProcesses:
    """Starts nothing before the first program. `serve` carries the connections of guarded networks; `unread` tells
    which paths rules keep from being read."""
    from toolreeve.sandbox.docker import Docker
    from toolreeve.sandbox.integrity.quarantine import Quarantine
    from toolreeve.sandbox.sandbox import Sandbox
    from toolreeve.sandbox.tiers import Strictness
    from toolreeve.sandbox.unconfined import Unconfined

    sandbox = configuration.settings.sandbox
    layout = new_layout(configuration)
    layout = dataclasses.replace(layout, guards=dataclasses.replace(layout.table(), unread=unread))
    if sandbox.mode == "docker":
        return Docker(layout, sandbox.image, configuration.docker)
    unconfined = sandbox.mode == "none"
    if sys.platform != "linux" and (unconfined or sandbox.require == "limits"):
        return Unconfined(layout, tier="none" if unconfined else "limits")
    strictness = Strictness(require=sandbox.require, concurrency=sandbox.concurrency, confined=not unconfined)
    quarantine = Quarantine(str(Path(configuration.settings.state.dir) / "quarantine"), layout.table())
    return Sandbox(layout, strictness, serve, quarantine, warm_trials=configuration.settings.trial.warm)


def new_layout(configuration: Configuration) -> "Layout":
    from toolreeve.sandbox.layout import Layout

    settings = configuration.settings
    workspace = os.path.realpath(settings.workspace.dir)
    toolchains = find_toolchains(configuration)
    home = (settings.commands.home,) if settings.commands.home else ()
    for folder in home:
        ensure_home(folder)
    return Layout(
        workspace=workspace,
        may_write=settings.workspace.allow_write,
        writable=(*settings.workspace.writable_roots, *home),
        readable=(
            *_own_python(workspace),
            *settings.workspace.extra_roots,
            *settings.sandbox.readable,
        ),
        protected=configuration.governing,
        hidden=(os.path.realpath(settings.state.dir),),
        more=toolchains.visible,
        guards=guard_table(configuration),
        git_identity=_git_identity(configuration.home),
        layer_mb=0 if settings.trial.use == "off" else settings.trial.layer_mb,
    )


def find_hideable(matchers: Sequence["Matcher"], configuration: Configuration) -> list["PermissionRule"]:
    """The rules about reading that covers can enforce: they reach nothing that commands see beyond the roots that are
    watched, and not everything in the workspace."""
    from toolreeve.sandbox.layout import KERNEL, SYSTEM

    workspace = configuration.settings.workspace.dir
    if not matchers or os.path.realpath(workspace) != workspace:
        return []
    layout = new_layout(configuration)
    table = layout.table()
    watched = (*table.roots, *table.readable)
    more = layout.more()
    seen = [*layout.readable, *(() if more is None else more.readable), *table.environment]
    beyond = [*SYSTEM, *KERNEL, *(path for path in seen if path not in watched)]
    any_file = f"{layout.workspace}/{'x' * 32}"
    return [
        each.rule for each in matchers if not (each.targets(any_file) or any(each.may_reach(place) for place in beyond))
    ]


def _git_identity(home: str) -> str:
    """The committer from the user's git configuration: commands see nothing else of it."""
    found = ""
    for path in (Path(home, ".config/git/config"), Path(home, ".gitconfig")):
        try:
            found += git_config.identity(path.read_bytes()).decode("utf-8", "surrogateescape")
        except (OSError, git_config.MalformedGitConfig):
            continue
    return found


def command_rules(configuration: Configuration) -> CommandRules:
    """The settings of the shell and quality tools."""
    commands = configuration.settings.commands
    quality = configuration.settings.quality
    named = {each.name: getattr(quality, each.name) for each in dataclasses.fields(Quality) if each.name != "timeout"}
    toolchains = find_toolchains(configuration)
    folders = (f"{path}/bin" for path in (sys.prefix, sys.base_prefix, *configuration.settings.sandbox.readable))
    return CommandRules(
        allow=commands.allowlist,
        block=commands.blocklist,
        timeout=commands.timeout,
        network=commands.network,
        memory_mb=commands.memory_mb,
        processes=commands.processes,
        quality_timeout=quality.timeout,
        quality=named,
        first_path=toolchains.path,
        environment=toolchains.environment,
        search_path=tuple(dict.fromkeys(folder for folder in folders if Path(folder).is_dir())),
    )


_NETWORK = {"none": "No network.", "guarded": "Network: only permitted hosts.", "host": "With network."}


def describe_surroundings(configuration: Configuration) -> str:
    """What a command has, in a few words for the model."""
    commands = configuration.settings.commands
    home = "its HOME stays" if commands.home else "HOME and /tmp start empty and vanish with the command"
    names = find_toolchains(configuration).names
    also = f" On PATH besides the system: {', '.join(names[:8])}." if names else ""
    return (
        f"{_NETWORK[commands.network]} {home}; at most {commands.memory_mb} MB and {commands.processes} processes;"
        f" .env files, keys and credentials are hidden.{also}"
    )


def _own_python(workspace: str) -> tuple[str, ...]:
    """Our own interpreter, its packages and our own package: pytest of this environment loads a plugin of ours."""
    package = str(Path(__file__).parents[2])
    own = (sys.base_prefix, sys.prefix, *(() if is_within(package, workspace) else (package,)))
    return tuple(dict.fromkeys(own))
