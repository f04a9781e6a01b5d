"""Paths in commands: resolved as text, and whether they are secrets.

No file is looked at. Symbolic links are not followed here: the sandbox confines where they lead.
"""

import re
from fnmatch import filter as matching
from posixpath import normpath

QUIET = frozenset(
    "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/stdin /dev/stdout /dev/stderr /dev/tty "
    "/dev/fd/0 /dev/fd/1 /dev/fd/2 /dev/fd/63".split()
)
"""Device files that store nothing and reveal nothing."""

_SECRET = re.compile(
    r"""\.env$ | \.(?<!/\.)(?:pem|key|p12|pfx|jks|keystore|kdbx|keytab|ovpn|ppk)$
    | /(?:
        \.(?:
          env(?!\.(?:example|sample|template|dist)$)(?:\.[^/]*|rc)?$
        | (?:ssh|gnupg|aws|azure|kube|password-store|toolreeve|mozilla|thunderbird|vault-token|secrets?)(?:/|$)
        | docker/config\.json$ | config/(?:gcloud|gh|hub|op|rclone|containers)(?:/|$) | terraform\.d/credentials
        | (?:netrc|pgpass|my\.cnf|git-credentials|npmrc|pypirc|htpasswd|dockercfg|boto|s3cfg|terraformrc)$
        | [a-z_]*history$
        )
      | _netrc$ | id_(?:rsa|dsa|ecdsa|ed25519)[^/]*(?<!\.pub)$ | terraform\.tfstate(?:\.backup)?$ | wp-config\.php$
      | (?:credentials|secrets?|passwords?)(?:\.(?:json|ya?ml|toml|ini|txt|xml|properties|csv|db))?$
      | (?=[bdeprsv])(?<=^/)(?:
          etc/(?:g?shadow|sudoers|ssl/private|ssh/ssh_host|krb5\.keytab|openvpn|ipsec|wireguard|security/opasswd)
        | (?:var/run|run)/(?:docker\.sock|secrets) | root/\. | boot/(?!grub/themes)
        | proc/(?:[^/]*/)+(?:environ|mem|maps|fd|root|cwd|cmdline|auxv|stack|syscall|pagemap|map_files|exe|io)(?:/|$)
        | proc/(?:kcore|kmsg|kallsyms|keys|sysrq-trigger|sys/kernel/core_pattern)
        | var/(?:lib/(?:docker|kubelet|mysql|postgresql|sss)|spool/cron|log/auth|log/secure|backups)
        | sys/firmware | dev/(?!null$|zero$|full$|u?random$|std(?:in|out|err)$|tty$|fd/|pts/|shm/|$)
        )
    )""",
    re.VERBOSE | re.MULTILINE,
)
_ACCOUNT = re.compile(r"service[-_]account[^/]*\.json$", re.MULTILINE)
_UNTIDY = ("/.", "//", "/\n", "\n.", "\n\n")
_MANY = 8
_WITNESSES = (
    ".env .env.local prod.env secret.env id_rsa id_ed25519 server.pem private.key .netrc .npmrc .pgpass "
    ".git-credentials .bash_history credentials .ssh .aws .gnupg .kube shadow environ"
).split()
_WILD = re.compile(r"[*?\[\]]")
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
    """Whether the file at this absolute path is likely to hold a secret; an odd name counts as one."""
    return "\n" in path or _may_tell(path.lower())


def any_secret(paths: list[str], root: str) -> bool:
    """`is_secret` for many paths at once; paths in the workspace count by the part below its root."""
    together = "\n".join(["", *paths])
    if together.count("\n") > len(paths):
        return True
    inside = together if root == "/" else together.replace(f"\n{root}/", "\n/")
    return _may_tell(inside.lower())


def _may_tell(text: str) -> bool:
    return _SECRET.search(text) is not None or ("account" in text and _ACCOUNT.search(text) is not None)


def may_match_secret(pattern: str) -> bool:
    """Whether a glob targets secrets: it matches the name of one, and does not simply match everything."""
    return targeted_secret(pattern) != ""


def targeted_secret(pattern: str) -> str:
    """A secret that a glob targets, or an empty string."""
    full = pattern if pattern[:1] == "/" else f"/{pattern}"
    if is_secret(full.replace("*", "x").replace("?", "x")):
        return pattern
    names = [name for name in pattern.split("/") if name not in _BROAD and any(char in name for char in "*?[")]
    return next((found for name in names for found in _witnesses(name.lower())), "")


def _witnesses(pattern: str) -> list[str]:
    """The secrets whose name a glob matches. Most differ in the first or last letters and need no matching."""
    head, tail = _WILD.split(pattern, maxsplit=1)[0], _WILD.split(pattern)[-1]
    alike = [name for name in _WITNESSES if name.startswith(head) and name.endswith(tail)]
    return matching(alike, pattern) if alike else alike


def secrets_below(path: str, home: str) -> bool:
    """Whether a directory outside the workspace is known to hold secrets somewhere below it."""
    return path == home or _VAULTS.match(path) is not None or is_secret(path + "/x")
