"""Builds approval channels: from what the program passes, and for the terminal."""

import inspect
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolreeve.core.errors import ToolreeveError
from toolreeve.runtime.principal import system_user

if TYPE_CHECKING:
    from toolreeve.approval.channel import Channel
    from toolreeve.approval.channels.terminal import TerminalChannel

    Approve = Callable[..., Any] | Channel | Sequence[Channel]


class DefaultApprove:
    """The default of `approve`: the terminal, if the program has one."""

    def __repr__(self) -> str:
        return "<the terminal, if there is one>"


OWN_TERMINAL = DefaultApprove()


def new_channels(approve: "Approve | DefaultApprove | None", environ: Mapping[str, str]) -> "Sequence[Channel]":
    """No channel means that nobody can be asked: calls that need approval are refused."""
    if isinstance(approve, DefaultApprove):
        return (new_terminal_channel(environ),) if os.isatty(0) and os.isatty(2) else ()
    if approve is None:
        return ()
    if isinstance(approve, Sequence):
        return [_channel(each) for each in approve]
    return (_channel(approve),)


def _channel(approve: Any) -> "Channel":
    from toolreeve.approval.channel import Channel
    from toolreeve.approval.channels.callback import CallbackChannel

    if isinstance(approve, type) or not (callable(approve) or isinstance(approve, Channel)):
        raise ToolreeveError(
            f"approve={approve!r:.100}: pass a function of the request, a channel, or a list of channels"
        )
    if isinstance(approve, Channel):
        return approve
    try:
        inspect.signature(approve).bind(object())
    except TypeError as problem:
        raise ToolreeveError(f"approve={approve!r:.100}: it is called with the request alone: {problem}") from None
    except ValueError:  # a builtin without a signature is found out when it is called
        pass
    return CallbackChannel(approve)


def new_terminal_channel(environ: Mapping[str, str], *, session: bool = True) -> "TerminalChannel":
    """Edits arguments with the user's editor, from VISUAL or EDITOR."""
    from toolreeve.approval.channels.terminal import TerminalChannel

    editor = environ.get("VISUAL") or environ.get("EDITOR") or ""
    colours = not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"
    return TerminalChannel(
        editor=shlex.split(editor), session=session, colours=colours, approver=system_user(), now=time.time
    )
