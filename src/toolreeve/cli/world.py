"""What does a command work with? The runtime of the configuration, with the terminal as the way to ask."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolreeve.cli.invocation import Invocation

if TYPE_CHECKING:
    from toolreeve.approval.channel import Channel
    from toolreeve.guard.workspace import Workspace
    from toolreeve.runtime import Toolreeve


def new_runtime(invocation: Invocation, *channels: "Channel") -> "Toolreeve":
    """Built, not started: its tools and its policy can be looked at without a database."""
    from toolreeve.runtime import Toolreeve

    return Toolreeve(settings=invocation.configuration(), approve=channels or (_terminal(),), origin="cli")


def _terminal() -> "Channel":
    from toolreeve.approval.channels.terminal import TerminalChannel

    return TerminalChannel(editor=shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""))


@contextmanager
def new_workspace(invocation: Invocation) -> "Iterator[Workspace]":
    workspace = new_runtime(invocation).files
    try:
        yield workspace
    finally:
        workspace.close()
