"""Builds approval channels: from what the program passes, and for the terminal."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolreeve.approval.channel import Channel
from toolreeve.approval.channels.callback import CallbackChannel

if TYPE_CHECKING:
    from toolreeve.approval.channels.terminal import TerminalChannel

Approve = Callable[..., Any] | Channel | Sequence[Channel]


def new_channels(approve: Approve | None) -> Sequence[Channel]:
    """No channel means that nobody can be asked: calls that need approval are refused."""
    if approve is None:
        return ()
    if isinstance(approve, Sequence):
        return approve
    if isinstance(approve, Channel):
        return (approve,)
    return (CallbackChannel(approve),)


def new_terminal_channel(environ: Mapping[str, str]) -> "TerminalChannel":
    """Edits arguments with the user's editor, from VISUAL or EDITOR."""
    from toolreeve.approval.channels.terminal import TerminalChannel

    editor = environ.get("VISUAL") or environ.get("EDITOR") or ""
    return TerminalChannel(editor=shlex.split(editor))
