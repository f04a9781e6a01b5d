"""Where do programs run? In the kind of sandbox that the settings choose, around the configured workspace."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Protocol

from toolreeve.config import Configuration, Quality
from toolreeve.config.guard_table import guard_table
from toolreeve.core import git_config
from toolreeve.core.command_settings import CommandRules
from toolreeve.core.process import Processes
from toolreeve.sandbox.docker import Docker
from toolreeve.sandbox.integrity.quarantine import Quarantine
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox, Serve
from toolreeve.sandbox.tiers import Strictness
from toolreeve.sandbox.unconfined import Unconfined


class Confinement(Processes, Protocol):
    """What runs programs, and ends with the runtime."""

    async def close(self) -> None: ...


def new_processes(configuration: Configuration, serve: Serve | None = None) -> Confinement:
    """Nothing is started before the first program is. `serve` carries the connections of guarded networks."""
    sandbox, around = configuration.settings.sandbox, grounds(configuration)
    if sandbox.mode == "docker":
        return Docker(around, sandbox.image, configuration.docker)
    unconfined = sandbox.mode == "none"
    if sys.platform != "linux" and (unconfined or sandbox.require == "limits"):
        return Unconfined(around, tier="none" if unconfined else "limits")
    strictness = Strictness(require=sandbox.require, concurrency=sandbox.concurrency, confined=not unconfined)
    quarantine = Quarantine(str(Path(configuration.settings.state.dir) / "quarantine"), around.table())
    return Sandbox(around, strictness, serve, quarantine)


def grounds(configuration: Configuration) -> Layout:
    settings = configuration.settings
    workspace = os.path.realpath(settings.workspace.dir)
    return Layout(
        workspace=workspace,
        may_write=settings.workspace.allow_write,
        writable=settings.workspace.writable_roots,
        readable=(*_own_python(), *settings.workspace.extra_roots, *settings.sandbox.readable),
        protected=configuration.governing,
        hidden=(os.path.realpath(settings.state.dir),),
        guards=guard_table(configuration),
        git_identity=_git_identity(configuration.home),
    )


def _git_identity(home: str) -> str:
    """Who commits, from the user's own settings of git: commands see nothing else of them."""
    found = ""
    for path in (Path(home, ".config/git/config"), Path(home, ".gitconfig")):
        try:
            found += git_config.identity(path.read_bytes()).decode("utf-8", "surrogateescape")
        except (OSError, git_config.MalformedGitConfig):
            continue
    return found


def command_rules(configuration: Configuration) -> CommandRules:
    """What the shell and quality tools are told of the settings."""
    commands, quality = configuration.settings.commands, configuration.settings.quality
    named = {each.name: getattr(quality, each.name) for each in dataclasses.fields(Quality) if each.name != "timeout"}
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
        search_path=tuple(dict.fromkeys(folder for folder in folders if Path(folder).is_dir())),
    )


def _own_python() -> tuple[str, ...]:
    """The interpreter we run in and its packages: a toolchain that is there for certain."""
    return tuple(dict.fromkeys((sys.base_prefix, sys.prefix)))
