"""Paths in commands: resolved as text, and whether they are secrets.

No file is looked at. Symbolic links are not followed here: the sandbox confines where they lead.
"""

import re
from fnmatch import filter as matching
from posixpath import normpath

from toolreeve.core.secrets.paths import any_may_hold_secrets, home_secrets

QUIET = frozenset(
    "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/stdin /dev/stdout /dev/stderr /dev/tty "
    "/dev/fd/0 /dev/fd/1 /dev/fd/2 /dev/fd/63".split()
)
"""Device files that store nothing and reveal nothing."""

_UNTIDY = ("/.", "//", "/\n", "\n.", "\n\n")
_MANY = 8
_WITNESSES = (
    ".env .env.local prod.env secret.env id_rsa id_ed25519 server.pem private.key .netrc .npmrc .pgpass "
    ".git-credentials .bash_history credentials .ssh .aws .gnupg .kube shadow environ"
).split()
_SENSITIVE = (
    "credentials.json credentials.yaml credentials.toml secrets.json secrets.yaml secrets.yml secrets.toml secret.yaml "
    "secret.json passwords.txt password.txt passwords.csv terraform.tfstate wp-config.php service-account.json"
).split()
_TARGETS = 4
"""Letters before the dot with which a glob targets one of these."""
_ENDINGS = (
    "env envrc pem key p12 pfx ppk jks keystore kdbx keytab ovpn netrc npmrc pypirc pgpass htpasswd dockercfg s3cfg "
    "boto git-credentials vault-token terraformrc authinfo fetchmailrc msmtprc json yaml yml toml ini txt xml csv db "
    "properties php tfstate backup"
).split()
"""What names of secrets end in after their last dot."""
_WILD = re.compile(r"[*?\[\]]")
_BRACKET = re.compile(r"\[!?([^\]/])[^\]/]*\]")
_BROAD = frozenset(("*", "*.*", "?*", "**", "*/", "./*"))
_VAULTS = re.compile(r"/(?:etc|root|home|home/[^/]+|proc|dev|boot|run|var|var/lib|Users|Users/[^/]+)?$")
"""Directories that hold secrets somewhere below: reading all of one reads them."""


def resolve(path: str, directory: str) -> str:
    """The absolute, normal form of a path as seen from `directory`."""
    full = path if path[:1] == "/" else f"{directory}/{path}"
    if "/." in full or "//" in full or full[-1] == "/":
        full = normpath(full)
        return full[1:] if full[:2] == "//" else full
    return full


def resolve_all(paths: list[str], directory: str) -> list[str]:
    """`resolve` for many paths at once."""
    if len(paths) < _MANY:
        return [resolve(path, directory) for path in paths]
    together = "\n".join(["", *paths, ""])
    if any(sign in together for sign in _UNTIDY):
        return [resolve(path, directory) for path in paths]
    start = directory if directory == "/" else f"{directory}/"
    return [path if path[0] == "/" else start + path for path in paths]


def is_under(path: str, root: str) -> bool:
    return path == root or root == "/" or path.startswith(root + "/")


def is_secret(path: str) -> bool:
    """Whether the file at this absolute path may hold a secret; an odd name counts as one."""
    return "\n" in path or any_may_hold_secrets(path.casefold())


def any_secret(paths: list[str], root: str, home: str) -> bool:
    """`is_secret` for many paths at once; paths in the workspace count by the part below its root."""
    together = "\n".join(["", *paths])
    if together.count("\n") > len(paths):
        return True
    inside = together if root == "/" else together.replace(f"\n{root}/", "\n/")
    return any_may_hold_secrets(inside.casefold()) or is_home_secret(together, home)


def is_home_secret(paths: str, home: str) -> bool:
    """Whether one of these absolute paths, each after a line end, is a secret of the home directory."""
    return f"\n{home}/" in paths and home_secrets(home).search(paths.casefold()) is not None


def may_match_secret(pattern: str) -> bool:
    """Whether a glob targets secrets: it matches the name of one, and does not simply match everything."""
    return targeted_secret(pattern) != ""


def targeted_secret(pattern: str) -> str:
    """A secret that a glob targets, or an empty string."""
    full = pattern if pattern[:1] == "/" else f"/{pattern}"
    if is_secret(_BRACKET.sub(r"\1", full).replace("*", "x").replace("?", "x")):
        return pattern
    names = [name for name in pattern.split("/") if name not in _BROAD and any(char in name for char in "*?[")]
    for name in names:
        if found := _witnesses(name.casefold()):
            return found[0]
    return _complete(pattern)


def _witnesses(pattern: str) -> list[str]:
    """The secrets whose name a glob matches. Most differ in the first or last letters and need no matching."""
    pieces = _WILD.split(pattern)
    spelled = len("".join(pieces).partition(".")[0])
    names = [*_WITNESSES, *(_SENSITIVE if spelled >= _TARGETS else ())]
    alike = [name for name in names if name.startswith(pieces[0]) and name.endswith(pieces[-1])]
    return matching(alike, pattern) if alike else alike


def _complete(pattern: str) -> str:
    """A secret that a glob spells but for some letters of its ending, such as `tls.ke?`; `tls.*` spells none."""
    stem, _, ending = pattern.casefold().rpartition(".")
    wild = _WILD.search(ending)
    if wild is None or not wild.start():
        return ""
    stem = stem.replace("*", "x").replace("?", "x")
    literal = len(_WILD.sub("", ending))
    for word in matching(_ENDINGS, ending):
        if 2 * literal >= len(word) and is_secret(f"/{stem}.{word}"):
            return f"{stem}.{word}"
    return ""


def secrets_below(path: str, home: str) -> bool:
    """Whether a directory outside the workspace is known to hold secrets somewhere below it."""
    return path == home or _VAULTS.match(path) is not None or is_secret(path + "/x")
