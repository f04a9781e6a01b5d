"""Where do programs run? In the kind of sandbox that the settings choose, around the configured workspace."""

import os
import sys

from toolreeve.config import Configuration
from toolreeve.guard.sensitive import find_secret
from toolreeve.sandbox.grounds import Grounds
from toolreeve.sandbox.sandbox import Sandbox, Strictness


def new_processes(configuration: Configuration) -> Sandbox:
    """Nothing is started before the first program is."""
    sandbox = configuration.settings.sandbox
    strictness = Strictness(require=sandbox.require, concurrency=sandbox.concurrency)
    return Sandbox(grounds(configuration), strictness)


def grounds(configuration: Configuration) -> Grounds:
    settings = configuration.settings
    workspace = os.path.realpath(settings.workspace.dir)
    return Grounds(
        workspace=workspace,
        may_write=settings.workspace.allow_write,
        writable=settings.workspace.writable_roots,
        readable=(*_own_python(), *settings.workspace.extra_roots, *settings.sandbox.readable),
        protected=configuration.governing,
        hidden=(settings.state.dir, *_secrets(workspace, settings.workspace.sensitive_allow)),
    )


def _own_python() -> tuple[str, ...]:
    """The interpreter we run in and its packages: a toolchain that is there for certain."""
    return tuple(dict.fromkeys((sys.base_prefix, sys.prefix)))


def _secrets(workspace: str, allowed: tuple[str, ...]) -> list[str]:
    """What lies openly at the top of the workspace and may hold secrets."""
    names = (entry.name for entry in os.scandir(workspace))
    return [f"{workspace}/{name}" for name in names if find_secret((name,)) and name not in allowed]
