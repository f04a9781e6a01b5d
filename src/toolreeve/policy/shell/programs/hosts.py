"""Hosts that the words of a command name: databases, repositories, images.

If they name none, the program contacts the host that it is configured for, which is reported by a name that is no host.
That what is sent there is fixed is checked for all commands alike, where they are run.
"""

import re

from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown
from toolreeve.policy.shell.programs.spec import Program

_NAMING = frozenset(("host", "url", "server"))
_ADDRESS = re.compile(r"(?:https?|ssh|git|ftps?|oci)://(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_DATABASE = re.compile(r"[a-z][a-z0-9+]*://(?:[^@/?]*@)?(?P<hosts>[^/?]*)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SETTINGS = frozenset(
    "host hostaddr port dbname user password connect_timeout application_name sslmode client_encoding".split()
)
_SHORT = re.compile(r"(?:[^@/:]+@)?(?P<host>[^/:@]+):(?!//)")
"""`user@host:path`, as git and scp write it."""
_MOST_HOSTS = 16
_DEFAULT_REGISTRY = "index.docker.io"


def server(word: Word, site: CommandSite) -> None:
    """The host of a database, or the directory of its socket."""
    if not isinstance(word, str):
        raise NotKnown(f"contacts `{shown(word)}`, a host decided only when it runs")
    _check_few(word)
    if not _is_socket(word):
        for host in word.split(","):
            site.contact_host(EffectKind.NET, host)


def database(word: Word, site: CommandSite) -> None:
    """The name of a database, its address, or a list of settings."""
    if not isinstance(word, str):
        raise NotKnown(f"connects to `{shown(word)}`, which is decided only when it runs")
    _check_few(word)
    for host in _hosts_of(word):
        server(host, site)


def _check_few(word: str) -> None:
    if word.count(",") >= _MOST_HOSTS:
        raise NotKnown("too many hosts in one word")


def _hosts_of(word: str) -> list[str]:
    if address := _DATABASE.fullmatch(word):
        if "host" in address["rest"] or "service" in address["rest"] or "%" in address["hosts"]:
            raise NotKnown(f"the address `{word}`")
        return [host.rpartition(":")[0] or host for host in address["hosts"].split(",") if host]
    if "=" not in word:
        return []
    settings = [setting.partition("=") for setting in word.split()]
    if any(name not in _SETTINGS or not equals for name, equals, _ in settings) or re.search(r"['\"\\]", word):
        raise NotKnown(f"the settings `{word}`")
    return [host for name, _, value in settings if name.startswith("host") for host in value.split(",")]


def _is_socket(word: str) -> bool:
    return word.startswith(("/", "@")) or not word


def repository(word: Word, site: CommandSite, kind: EffectKind) -> None:
    """A git repository: an address, a directory, or the name of a remote."""
    if not isinstance(word, str):
        raise NotKnown(f"contacts `{shown(word)}`, an address decided only when it runs")
    if "::" in word:
        raise NotKnown(f"`{word}`, which names a program to talk through")
    if _ADDRESS.match(word) or "://" in word:
        site.contact_host(kind, word)
    elif short := _SHORT.match(word):
        site.contact_host(kind, short["host"])
    elif "/" in word or word.startswith("."):
        site.touch(EffectKind.WRITE if kind is EffectKind.SEND else EffectKind.READ, word, Reach.BELOW)
    else:
        site.findings.effects.append(Effect(kind, "git remote"))


def image(word: Word, site: CommandSite, kind: EffectKind) -> None:
    """The first part of an image's name is a registry if it looks like a host."""
    if not isinstance(word, str):
        raise NotKnown(f"contacts the registry of `{shown(word)}`, an image decided only when it runs")
    first, slash, _ = word.removeprefix("docker://").partition("/")
    named = slash and (first == "localhost" or "." in first or ":" in first)
    site.contact_host(kind, first if named else _DEFAULT_REGISTRY)


def project(word: Word, site: CommandSite) -> None:
    """`[host/]owner/name` or an address, as the CLIs of code forges take it."""
    if not isinstance(word, str):
        raise NotKnown(f"asks about `{shown(word)}`, which may name any host")
    if host := _project_host(word):
        site.contact_host(EffectKind.NET, host)


def _project_host(word: Word) -> str:
    if not isinstance(word, str):
        return ""
    if _ADDRESS.match(word):
        return word
    if short := _SHORT.match(word):
        return short["host"]
    return word.partition("/")[0] if word.count("/") == 2 else ""


def contact(spec: Program, arguments: Arguments, site: CommandSite) -> None:
    """Record the hosts that the words name besides those of a role; else the host that it is configured for."""
    roles = [(spec.flags.get(flag, ""), value) for flag, value in arguments.flags]
    roles.extend(zip((role.rstrip("?*+") for role in spec.operands), arguments.operands, strict=False))
    named = any(_names_host(role, word) for role, word in roles)
    for word in (*arguments.operands, *(value for _, value in arguments.flags)):
        if isinstance(word, str) and (address := _ADDRESS.match(word)):
            site.contact_host(EffectKind.NET, address["rest"])
            named = True
    if not named:
        site.findings.effects.append(Effect(EffectKind.NET, spec.net))


def _names_host(role: str, value: Word | None) -> bool:
    if role == "project":
        return value is not None and bool(_project_host(value))
    if role == "connection":
        return isinstance(value, str) and bool(_hosts_of(value))
    return role in _NAMING and isinstance(value, str) and not _is_socket(value)
