"""Secret paths: the one table for file tools and commands.

Pure. Names are compared casefolded, because some file systems ignore case: better to refuse one file too many than to
read one secret. A path found here is neither read by a tool nor seen by a command, unless the configuration names it
(`workspace.sensitive_allow`).
"""

import re
from collections.abc import Sequence

_TEMPLATE = r"(?!.*(?:example|sample|template|dist|defaults?)\b)"
_NAMES = (
    r"\.env(?:rc)?|" + _TEMPLATE + r"(?:\.env[._-].+|.+\.env)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?!.*\.pub$).*"
    r"|.*(?:key|priv).*\.pem|.+\.(?:key|p12|pfx|ppk|jks|keystore|kdbx)"
    r"|[._]netrc|\.git-credentials|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.htpasswd|\.dockercfg|\.vault-token"
    r"|\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.password-store|\.terraformrc|\.s3cfg|\.boto"
    r"|\.authinfo(?:\.gpg)?|\.fetchmailrc|\.msmtprc|\.mbsyncrc|\.offlineimaprc|\.xauthority|\.iceauthority"
    r"|\.(?:bash|zsh|sh|fish|python|node_repl|psql|mysql|sqlite|rediscli)_history|\.mozilla|\.thunderbird"
    r"|\.toolreeve-quarantine-.*"
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


SECRET_PLACES = _read(_PLACES)
SECRETS_IN_HOME = _read(_IN_HOME)
_LONGEST = max(map(len, SECRET_PLACES))
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


def may_be_secret(name: str) -> bool:
    """Whether a path that ends in this casefolded name can be a secret; quick."""
    return name in _LAST_NAMES or name in _LAST_NAMES_IN_HOME or SECRET_NAMES.fullmatch(name) is not None


def _place_ending(folded: Sequence[str], at: int) -> str | None:
    for length in range(2, _LONGEST + 1):
        place = tuple(folded[max(0, at + 1 - length) : at + 1])
        if place in SECRET_PLACES:
            return "/".join(place)
    return None
