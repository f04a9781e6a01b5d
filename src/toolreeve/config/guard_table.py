"""The table of guarded and hidden paths for the configured directories."""

import os
import pwd
import sys
import sysconfig
from pathlib import Path

from toolreeve.config import xdg
from toolreeve.config.sources import Configuration
from toolreeve.core.guarded_paths import GuardTable, is_within

_FIRST_USER = 1000
_NOBODY = 65534


def guard_table(configuration: Configuration) -> GuardTable:
    """One table for file tools and commands: what neither may change or read."""
    settings = configuration.settings
    roots = _real(settings.workspace.dir, *settings.workspace.writable_roots)
    return GuardTable(
        roots=roots,
        readable=_real(*settings.workspace.extra_roots),
        homes=_homes(configuration.home, roots),
        environment=_environment(),
        governing=_real(*configuration.governing),
        secret=_real(settings.state.dir, str(configuration.user_file.with_name(xdg.SECRETS_FILE))),
        allowed=settings.workspace.sensitive_allow,
    )


def _real(*paths: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(os.path.realpath, paths)))


def _homes(own: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """The home directories within a root: a workspace may be the home of another user. Service users are skipped."""
    people = (user for user in pwd.getpwall() if user.pw_uid == 0 or _FIRST_USER <= user.pw_uid < _NOBODY)
    known = _real(own, *(user.pw_dir for user in people))
    return tuple(home for home in known if home != "/" and any(is_within(home, root) for root in roots))


def _environment() -> tuple[str, ...]:
    """What the runtime runs from: its interpreter, the installed packages, and its own code."""
    folders = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts"))
    own = str(Path(__file__).parents[1])
    return _real(sys.prefix, sys.base_prefix, own, *folders)
