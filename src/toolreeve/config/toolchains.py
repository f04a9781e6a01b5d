"""Toolchains: programs on the user's PATH that commands may use, read-only.

Only what a program needs is visible: its own installation, never the whole of a directory that also holds credentials.
What commands can write is never on their search path. An installation too large to be searched for secrets stays
invisible.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from toolreeve.config.sources import Configuration
from toolreeve.core.errors import ConfigError
from toolreeve.core.guarded_paths import is_within
from toolreeve.core.secrets.paths import find_home_secret, find_secret

MOST_SEARCHED = 20_000
_PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims", "scripts"})
_SHARED = frozenset({".local", ".config", ".cache", ".cargo", ".npm", ".m2", ".gradle", ".yarn", "snap", "go"})
"""Directories that hold far more than the programs in their `bin`."""
_NEEDED: Mapping[str, tuple[str, ...]] = {
    ".cargo": (".rustup", ".cargo/registry", ".cargo/git"),
    ".local": (
        *(".local/share/uv/tools", ".local/share/uv/python", ".local/share/pipx", ".local/pipx", ".local/lib"),
        *(".local/share/mise/installs", ".local/share/fnm", ".local/share/pnpm"),
    ),
    "go": ("go/pkg/mod",),
}
"""What the programs of a shared directory need besides."""
_CACHES = (".cache/pip", ".cache/uv", ".npm/_cacache", ".m2/repository")
_VARIABLES: Mapping[str, tuple[str, str]] = {
    "PYENV_ROOT": (".pyenv", ".pyenv"),
    "RUSTUP_HOME": (".rustup", ".cargo"),
    "CARGO_HOME": (".cargo", ".cargo"),
    "GOMODCACHE": ("go/pkg/mod", "go"),
    "VOLTA_HOME": (".volta", ".volta"),
    "ASDF_DIR": (".asdf", ".asdf"),
}
"""Variables, the place each names, and the directory whose programs need it."""
_PACKAGES = frozenset(
    {
        *("lib", "lib64", "include", "share", "site-packages", "node_modules", "registry", "mod", "pkgs", "conda-meta"),
        *("_cacache", "repository", "pip", "uv", ".git", "libexec", "src"),
    }
)
"""Directories of published packages and of the toolchain itself: nobody keeps own secrets there."""


class VisiblePaths(NamedTuple):
    """What commands see of toolchains: `hidden` are secrets inside `readable`. `too_large` could not be searched."""

    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    too_large: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchains:
    """`path` are directories with programs, in the user's order. `left_out` names directories of the PATH that commands
    do not get, and why. Nothing is searched before `visible` is called."""

    home: str
    path: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Short names, for people and models: `cargo`, `pyenv`, `node`."""
        return tuple(dict.fromkeys(map(_short, self.path)))

    def visible(self) -> VisiblePaths:
        return _visible(self.home, self.path, self.writable, self.readable)


def find_toolchains(configuration: Configuration) -> Toolchains:
    """Raises ConfigError for a wrong `commands.env`."""
    settings = configuration.settings
    commands = settings.commands
    home = os.path.realpath(configuration.home)
    writable = tuple(map(os.path.realpath, (settings.workspace.dir, *settings.workspace.writable_roots)))
    environ = configuration.known.environ
    entries = environ.get("PATH", "").split(":") if commands.toolchains else []
    path: list[str] = []
    left_out: list[tuple[str, str]] = []
    for entry in dict.fromkeys((*commands.path, *filter(os.path.isabs, entries))):
        reason = _refusal(entry, home, writable, is_named=entry in commands.path)
        if reason is None:
            path.append(entry)
        elif reason:
            left_out.append((entry, reason))
    environment = _variables(home, path)
    environment |= {name: environ[name] for name in commands.env_pass if name in environ}
    environment |= _own_variables(commands.env)
    if commands.home:
        environment["HOME"] = commands.home
    return Toolchains(
        home=home,
        path=tuple(path),
        writable=writable,
        readable=commands.readable,
        environment=environment,
        left_out=tuple(left_out),
    )


@lru_cache(maxsize=16)
def _visible(home: str, path: Sequence[str], writable: Sequence[str], named: Sequence[str]) -> VisiblePaths:
    roots = [root for entry in path for root in (*_roots(entry, home), entry)]
    if path:
        roots += [root for name in _CACHES if os.path.isdir(root := f"{home}/{name}")]
    roots = [root for root in roots if not any(is_within(each, os.path.realpath(root)) for each in writable)]
    searched = {root: _secrets(root) for root in dict.fromkeys((*roots, *named))}
    usable = {root: secrets for root, secrets in searched.items() if secrets is not None}
    return VisiblePaths(
        readable=tuple(usable),
        hidden=tuple(dict.fromkeys(secret for secrets in usable.values() for secret in secrets)),
        too_large=tuple(root for root, secrets in searched.items() if secrets is None),
    )


def _variables(home: str, path: Sequence[str]) -> dict[str, str]:
    """Where toolchains find themselves, for commands have another home directory."""
    used = {os.path.relpath(entry, home).split("/")[0] for entry in path}
    return {
        name: f"{home}/{place}"
        for name, (place, of) in _VARIABLES.items()
        if of in used and os.path.isdir(f"{home}/{place}")
    }


def _refusal(entry: str, home: str, writable: Sequence[str], *, is_named: bool) -> str | None:
    """Why commands do not get a directory of the PATH; empty if they have it anyway, None if they get it."""
    real = os.path.realpath(entry)
    if not os.path.isdir(real):
        return "" if not is_named else "it does not exist"
    if any(is_within(real, root) for root in writable):
        return "commands can write it"
    if not is_named and not any(is_within(real, base) for base in (home, "/opt")):
        return ""
    if real in (home, "/"):
        return "it is the whole home directory"
    below = os.path.relpath(real, home).split("/") if is_within(real, home) else []
    return find_secret(real.split("/")[1:]) or find_home_secret(below)


def _roots(entry: str, home: str) -> Iterator[str]:
    """The directories that the programs of an entry need: its installation, and those that links lead to."""
    installation = os.path.dirname(entry)
    below = os.path.relpath(entry, home).split("/")
    if below[0] in _NEEDED:
        yield from (f"{home}/{name}" for name in _NEEDED[below[0]] if os.path.isdir(f"{home}/{name}"))
    if os.path.basename(entry) in _PROGRAM_FOLDERS and not _is_shared(installation, home):
        yield installation
    for target in _link_targets(entry):
        root = os.path.dirname(os.path.dirname(target))
        if os.path.basename(os.path.dirname(target)) in _PROGRAM_FOLDERS and not _is_shared(root, home):
            yield root


def _is_shared(folder: str, home: str) -> bool:
    """Whether it holds more than one installation: the home directory itself, or one of its common directories."""
    if folder in (home, "/", "/usr", "/usr/local", "/opt") or is_within(home, folder):
        return True
    return os.path.dirname(folder) == home and os.path.basename(folder) in _SHARED


def _link_targets(entry: str) -> Iterator[str]:
    with os.scandir(entry) as found:
        for number, each in enumerate(found):
            if number < 500 and each.is_symlink():
                target = os.path.realpath(each.path)
                if os.path.isfile(target) and not is_within(target, entry):
                    yield target


@lru_cache(maxsize=256)
def _secrets(root: str) -> tuple[str, ...] | None:
    """The secret files of an installation; None if there is too much to search."""
    found: list[str] = []
    waiting = [root]
    count = 0
    while waiting:
        try:
            listed = os.scandir(waiting.pop())
        except OSError:
            continue
        with listed as entries:
            for each in entries:
                count += 1
                if find_secret(each.path.split("/")[1:]):
                    found.append(each.path)
                elif each.is_dir(follow_symlinks=False) and each.name not in _PACKAGES:
                    waiting.append(each.path)
        if count > MOST_SEARCHED:
            return None
    return tuple(found)


def _short(entry: str) -> str:
    parts = [part.lstrip(".") for part in entry.split("/") if part not in _PROGRAM_FOLDERS]
    versions = {"node", "pyenv", "cargo", "go", "volta", "asdf", "bun", "deno", "rbenv", "sdkman", "mise"}
    return next((part for part in parts if part in versions), "" if not parts else parts[-1])


def _own_variables(table: Mapping[str, object]) -> dict[str, str]:
    for name, value in table.items():
        if not isinstance(value, str) or not name or "=" in name or "\0" in name + value:
            raise ConfigError(f"{name!r} is not a variable", source="commands.env", fix='write NAME = "text"')
    return {name: str(value) for name, value in table.items()}


def ensure_home(folder: str) -> None:
    """Create the home directory of commands, private to the user."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
