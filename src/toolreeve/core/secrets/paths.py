"""Secret paths: the one table for file tools and commands.

Pure. Names are compared casefolded, for some file systems do not regard case either: rather one file too many refused
than one secret read. There are two tiers. Secrets are neither read by a tool nor seen by a command, unless the
configuration names them (`workspace.sensitive_allow`). Sensitive files, which projects also use for other purposes, are
read once that was approved: commands that nobody approved do not see them either.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

_ANY = r"[^/\n]"
_END = r"(?=/|$)"
_KEY_ENDINGS = "key|p12|pfx|ppk|jks|keystore|kdbx"
_SENSITIVE_ENDINGS = "pem|keytab|ovpn"
_TEMPLATE = rf"(?!{_ANY}*(?:example|sample|template|dist|defaults?)\b)"
_NAMES = (
    rf"\.env(?:rc)?|(?:(?=\.env[._-]){_TEMPLATE}\.env[._-]{_ANY}+|(?={_ANY}+\.env{_END}){_TEMPLATE}{_ANY}+)"
    rf"|id_(?:rsa|dsa|ecdsa|ed25519)(?!{_ANY}*\.pub{_END}){_ANY}*"
    rf"|{_ANY}*(?:key|priv){_ANY}*\.pem|{_ANY}+\.(?:{_KEY_ENDINGS})"
    r"|[._]netrc|\.git-credentials|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.htpasswd|\.dockercfg|\.vault-token"
    r"|\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.password-store|\.terraformrc|\.s3cfg|\.boto"
    r"|\.authinfo(?:\.gpg)?|\.fetchmailrc|\.msmtprc|\.mbsyncrc|\.offlineimaprc|\.xauthority|\.iceauthority"
    r"|\.(?:bash|zsh|sh|fish|python|node_repl|psql|mysql|sqlite|rediscli)_history|\.mozilla|\.thunderbird"
    rf"|\.toolreeve-quarantine-{_ANY}*"
)
SECRET_NAMES = re.compile(_NAMES)
"""Casefolded names that are secret by themselves."""

NEARBY = ".toolreeve-quarantine-"
"""Prefix of the quarantine directories in the workspace: commands do not see them."""

_PLACES = """
share/keyrings                  share/kwalletd                  library/keychains
.config/gcloud                  .config/gh                      .config/op                  .config/toolreeve
.config/glab-cli                .config/hub                     .config/rclone              .config/doctl
.config/sops                    .config/github-copilot          .config/containers/auth.json
.cargo/credentials              .cargo/credentials.toml         .gem/credentials
.claude/.credentials.json       .codex/auth.json                .gemini/oauth_creds.json
.terraform.d/credentials.tfrc.json                              .pulumi/credentials.json
.subversion/auth                .m2/settings-security.xml       .composer/auth.json         .config/composer/auth.json
"""
_IN_HOME = """
.config/google-chrome           .config/chromium                .config/bravesoftware       .config/microsoft-edge
.config/vivaldi                 .config/opera                   .config/mozilla             .cache/mozilla
.var/app                        snap/firefox                    snap/chromium               .librewolf
library/application support/google                              library/application support/firefox
library/cookies                 .config/1password               .config/bitwarden           .config/bitwarden cli
.config/keepassxc               .config/signal                  .config/slack               .config/discord
.local/share/telegramdesktop    .local/share/opencode/auth.json .claude.json                .config/heroku
.local/share/com.vercel.cli     .config/netlify                 .config/stripe              .fly
.m2/settings.xml                .gradle/gradle.properties       .nuget/nuget.config         .bundle/config
.oci                            .bluemix                        .config/linode-cli          .config/hcloud
.bitcoin                        .ethereum                       .electrum                   .config/solana
.kaggle                         .huggingface                    .cache/huggingface/token    .config/wireguard
.config/age                     .age                            .config/pulse/cookie
.viminfo                        .wget-hsts                      .local/share/fish/fish_history
.local/share/nix/trusted-settings.json                          .config/openvpn             .cert
"""


def _read(table: str) -> frozenset[tuple[str, ...]]:
    rows = (re.split(r"\s{2,}", row.strip()) for row in table.strip().splitlines())
    return frozenset(tuple(place.split("/")) for row in rows for place in row)


def _alternatives(places: frozenset[tuple[str, ...]]) -> str:
    return "|".join(re.escape("/".join(place)) for place in sorted(places))


SECRET_PLACES = _read(_PLACES)
SECRETS_IN_HOME = _read(_IN_HOME)
_LONGEST = max(map(len, SECRET_PLACES))
_SENSITIVE_NAMES = (
    rf"{_ANY}+\.(?:{_SENSITIVE_ENDINGS})|{_ANY}*\.tfstate(?:\.backup)?|wp-config\.php"
    r"|(?:credentials|secrets?|passwords?)(?:\.(?:json|ya?ml|toml|ini|txt|xml|properties|csv|db))?"
    rf"|{_ANY}*service[-_]account{_ANY}*\.json|\.[a-z_]*history"
)
_SENSITIVE_FOLDERS = r"\.secrets?"
_SENSITIVE = re.compile(rf"(?:^|/)(?:{_SENSITIVE_FOLDERS}{_END}|(?:{_SENSITIVE_NAMES})$)")
_SENSITIVE_NAME = re.compile(rf"{_SENSITIVE_FOLDERS}|{_SENSITIVE_NAMES}")
_SENSITIVE_FOLDER = re.compile(_SENSITIVE_FOLDERS)
_SYSTEM = r"""(?=[bdeprsv])(?<=^/)(?:
      etc/(?:g?shadow|sudoers|ssl/private|ssh/ssh_host|krb5\.keytab|openvpn|ipsec|wireguard|security/opasswd)
    | (?:var/run|run)/(?:docker\.sock|secrets) | root/\. | boot/(?!grub/themes)
    | proc/(?:[^/\n]*/)+(?:environ|mem|maps|fd|root|cwd|cmdline|auxv|stack|syscall|pagemap|map_files|exe|io)(?:/|$)
    | proc/(?:kcore|kmsg|kallsyms|keys|sysrq-trigger|sys/kernel/core_pattern)
    | var/(?:lib/(?:docker|kubelet|mysql|postgresql|sss)|spool/cron|log/auth|log/secure|backups)
    | sys/firmware | dev/(?!null$|zero$|full$|u?random$|std(?:in|out|err)$|tty$|fd/|pts/|shm/|$)
    )"""
"""Secrets of the operating system, outside of every workspace."""
_SECRET_PATHS = (
    rf"/(?:(?:{_NAMES}|{_SENSITIVE_FOLDERS}|{_alternatives(SECRET_PLACES)}){_END}"
    rf"|(?:{_SENSITIVE_NAMES})$|(?x:{_SYSTEM}))"
)
"""Both tiers and the system's secrets, in casefolded absolute paths, one a line."""
_VISIBLE_PLACES = frozenset(place for place in SECRET_PLACES if not place[0].startswith("."))
_SUSPICIOUS = re.compile(
    rf"/(?:\.|_netrc|id_|credentials|secret|password|wp-config|{_alternatives(_VISIBLE_PLACES)}"
    r"|(?<=^/)(?:etc|proc|dev|sys|boot|run|var|root)/)"
    rf"|\.(?:env|tfstate|{_KEY_ENDINGS}|{_SENSITIVE_ENDINGS})(?:[/.]|$)",
    re.MULTILINE,
)
"""Matches wherever `_SECRET_PATHS` does, accounts of services aside, at a fifth of the time."""
_LAST_NAMES = frozenset(place[-1] for place in SECRET_PLACES)
_LAST_NAMES_IN_HOME = frozenset(place[-1] for place in SECRETS_IN_HOME)


def find_secret(parts: Sequence[str]) -> str | None:
    """Why the path is a secret, or None. `parts` are the names from an allowed root down."""
    folded = [part.casefold() for part in parts]
    for at, name in enumerate(folded):
        if SECRET_NAMES.fullmatch(name):
            return f"{name!r} may hold secrets"
        if name in _LAST_NAMES and (place := _place_ending(folded, at)):
            return f"{place!r} may hold secrets"
    return None


def find_home_secret(parts: Sequence[str]) -> str | None:
    """As `find_secret`, for the names from a home directory down."""
    folded = tuple(part.casefold() for part in parts)
    for end in range(1, min(len(folded), 4) + 1):
        if folded[:end] in SECRETS_IN_HOME:
            return f"{'/'.join(folded[:end])!r} may hold secrets"
    return None


def is_sensitive(path: str) -> bool:
    """Whether reading the file at this path needs approval, judged by its names."""
    return _SENSITIVE.search(path.casefold()) is not None


def is_sensitive_folder(name: str) -> bool:
    """Whether all that a directory of this casefolded name holds is sensitive."""
    return _SENSITIVE_FOLDER.fullmatch(name) is not None


def any_may_hold_secrets(paths: str) -> bool:
    """Whether one of these casefolded absolute paths, one a line, is secret or sensitive. Fast."""
    if _SUSPICIOUS.search(paths) is None and "account" not in paths:
        return False
    return _secret_paths().search(paths) is not None


@cache
def _secret_paths() -> re.Pattern[str]:
    return re.compile(_SECRET_PATHS, re.MULTILINE)


@lru_cache(maxsize=8)
def home_secrets(home: str) -> re.Pattern[str]:
    """The secrets of a home directory, in casefolded absolute paths, each after a line end."""
    return re.compile(rf"\n{re.escape(home.casefold())}/(?:{_alternatives(SECRETS_IN_HOME)}){_END}", re.MULTILINE)


def may_be_secret(name: str) -> bool:
    """Whether a path that ends in this casefolded name can be a secret; quick."""
    return name in _LAST_NAMES or name in _LAST_NAMES_IN_HOME or SECRET_NAMES.fullmatch(name) is not None


def may_be_sensitive(name: str) -> bool:
    """Whether a path that ends in this casefolded name can be a sensitive file or folder; quick."""
    return _SENSITIVE_NAME.fullmatch(name) is not None


def _place_ending(folded: Sequence[str], at: int) -> str | None:
    for length in range(2, _LONGEST + 1):
        place = tuple(folded[max(0, at + 1 - length) : at + 1])
        if place in SECRET_PLACES:
            return "/".join(place)
    return None
