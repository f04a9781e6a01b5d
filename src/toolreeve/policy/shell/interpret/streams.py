"""Effects of redirections: files opened, standard input and output replaced."""

import re

from toolreeve.core.effects import EffectKind
from toolreeve.policy.shell.interpret.expansion import Glob, Word
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import QUIET
from toolreeve.policy.shell.parse.syntax import Redirect
from toolreeve.policy.shell.programs.arguments import NotKnown

_DESCRIPTOR = re.compile(r"\d+|-|\d+-")
_STABLE = re.compile(r"[\w./+,@%=:-]+", re.ASCII)


def replaces_stdin(redirects: tuple[Redirect, ...]) -> bool:
    """Whether standard input is not the pipe."""
    return any(redirect.operator.startswith("<") for redirect in redirects)


def merges_stderr(redirects: tuple[Redirect, ...]) -> bool:
    """Whether error messages may be mixed into the output."""
    return any(redirect.operator == ">&" for redirect in redirects)


def redirect(operator: str, target: Word, site: CommandSite) -> None:
    if operator in (">&", "<&"):
        if isinstance(target, str) and _DESCRIPTOR.fullmatch(target):
            return
        # Bash expands this word twice: what was quoted the first time would run the second time.
        if not isinstance(target, str) or not _STABLE.fullmatch(target):
            raise NotKnown(f"`{operator}` to a name that bash expands again")
    if isinstance(target, str) and target.startswith(("/dev/tcp", "/dev/udp")):
        raise NotKnown("a redirection to the network")
    if isinstance(target, Glob):
        raise NotKnown("a redirection to a pattern")
    if isinstance(target, str) and target in QUIET:
        return
    site.touch(EffectKind.READ if operator == "<" else EffectKind.WRITE, target)
