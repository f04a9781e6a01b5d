"""Labelled secrets: values recognised by the label before them.

Patterns are for RE2, over bytes. `HINTS` must match wherever one of them, a token, or a secret's name could.
"""

import re
from functools import cache

from toolreeve.core.secrets.token_patterns import TOKEN_HINTS

_TELLING_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credentials?|authorization|_auth|_pass"
    r"|(?:api|access|account|private|secret|signing|encryption|auth|master|storage|license|webhook)[_.-]?key"
    r"|secret[_-]?key[_-]?base)(?:_?[0-9])?"
)
_QUOTE = r"\\*[\"'`]"
_VALUE = r"[^\s\"'`&;\\\\]+"
_MIXED = r"[A-Za-z0-9+/=_.~!@#$%^&*-]"
_OPTION = r"(?:(?:[^\n|;]|\\\n)* )?"


def _run(programs: str, option: str, value: str = _VALUE) -> str:
    """The value of an option of one of these programs."""
    return rf"(\b(?:{programs}) {_OPTION}(?-i:{option})(?:{_QUOTE})?)({value})"


# Group 1 stays, group 2 is replaced. What follows them stays too.
FIRM: tuple[str, ...] = (
    rf"(--(?:[a-z0-9]+-)*(?:password|passwd|passphrase|pass|secret|token|api-?key|access-?key|secret-?key)\s+(?:{_QUOTE})?)"
    r"([^\s\"'`-][^\s\"'`]*)",
    rf"(\b(?:proxy-)?authorization{_QUOTE}?\s*:\s*(?:{_QUOTE})?(?:digest|aws4-hmac-sha256|hawk|oauth|signature)\s+)([^\r\n]+)",
    r"(\b(?:set-)?cookie\s*:\s*)([^\s=;,\"'()]+=[^\r\n\"']+)",
    r"(\b[a-z0-9-]*(?:-key|-token|-secret|-password|-signature|apikey)\s*:\s+)([A-Za-z0-9._~+/=|-]{12,})",
    r"(\bx-[a-z0-9-]*(?:key|token|secret|password)\s*:\s*)([^\s\"']+)",
    r"(\b(?:bearer|ssws|apikey)\s+)([A-Za-z0-9._~+/=-]{8,})",
    r"(\bbasic\s+)([A-Za-z0-9+/]{10,}={1,2}|[A-Za-z0-9+/]{4,}[0-9][A-Za-z0-9+/]{7,})",
    r"(\b[a-z][a-z0-9+.-]*://)([A-Za-z0-9_-]{20,})@",
    r"(\bjdbc:oracle:[a-z]+:[^\s/@]+/)([^\s@]+)@",
    r"([?&;](?:sig|x-amz-signature|x-goog-signature|x-amz-credential|signature|code|hmac)=)([A-Za-z0-9%+/=_.-]{20,})",
    rf"(secret[_-]?access[_-]?key(?:{_QUOTE})?[\s:=,]+(?:{_QUOTE})?)([A-Za-z0-9/+]{{40}})",
    rf"({_QUOTE}auth{_QUOTE}\s*:\s*{_QUOTE})([A-Za-z0-9+/=]{{8,}})",
    r"(\blogin\s+\S+\s+password\s+)(\S+)",
    r"((?:\b[a-z0-9.-]+:(?:54[0-9]{2}|6432)|(?:\*|\blocalhost|\b[a-z0-9-]+\.[a-z0-9.-]+):\*)"
    r":[a-z0-9_.*-]+:[a-z0-9_.*@-]+:)([^\s:]{4,})",
    _run("(?:mysql|mariadb)[a-z-]*", "-p", r"[^\s\"'`-][^\s\"'`]*"),
    _run("sshpass", r"-p\s*"),
    _run("curl|wget", r"(?:-u|-U|--user|--proxy-user)[\s=]*(?:\\*[\"'])?[^\s:\"'`/]+:"),
    _run("https?|xh", r"(?:-a|--auth)[\s=]+(?:\\*[\"'])?[^\s:\"'`/]+:"),
    _run("(?:docker|podman|buildah|skopeo|helm|nerdctl|oc|az|cf|doctl)", r"(?:[a-z -]*login\s[^\n|;]*)-p\s+"),
    _run("mongo[a-z]*|influx", r"-p\s+"),
    _run("redis-cli|valkey-cli", r"-a\s+"),
    _run("ldap[a-z]+", r"-w\s+"),
    _run("sqlcmd|bcp|unzip|zip|ipmitool", r"-P\s+"),
    _run("7za?", r"-p", r"[^\s\"'`-][^\s\"'`]*"),
    _run("smbclient|rpcclient|net", r"-U\s+[^\s%]+%"),
    r"(\bpass(?:in|out)?\s+(?:pass:))(\S+)",
    r"(\bhtpasswd\s+-[a-z]*b[a-z]*\s+\S+\s+\S+\s+)(\S+)",
    r"(\bidentified\s+by\s+')([^'\n]+)",
    r"(\bpassword\s+')([^'\n]+)",
)
# As above, but what looks like code or like words is left alone: see `is_value`.
LOOSE: tuple[str, ...] = (
    rf"((?-i:[A-Z0-9]_KEY)\s*[:=]\s*(?:{_QUOTE})?)([A-Za-z0-9+/=_.~-]{{16,}})",
    rf"(\bpass=(?:{_QUOTE})?)({_VALUE})",
    r"((?m:^)[\t -]*(?-i:pass): *)(\S{6,})(?m:$)",
    rf"({_TELLING_NAME}(?:{_QUOTE})?\s+value\s*[:=]\s*(?:{_QUOTE})?)({_VALUE})",
    r"(\b(?:bindpw|requirepass|masterauth)\s*[:=]?\s+)(\S+)",
    r"(_authtoken\s+)(\S{20,})",
    r"(\b(?:proxy-)?authorization\s*:\s*(?:(?:basic|bearer|token|apikey|negotiate|ssws|key)\s+)?)([^\s\"',;]+)",
    r"(\b[a-z][a-z0-9+.-]*://[^\s/:@\"'`]*:)([^\s/@\"'`]+)@",
    r"(\b(?:[a-z]*sess(?:ion)?[_-]?id|session|connect\.sid)=)([A-Za-z0-9%+/=_.:-]{16,})",
    rf"({_TELLING_NAME}=(?:{_QUOTE})?)({_VALUE})",
    rf"({_TELLING_NAME}(?:{_QUOTE})?\]?\s*(?::|=>?|:=)\s*{_QUOTE})([^\"'`\\\r\n]+)",
    rf"((?m:^)[\t >+#*-]*(?:(?:export|set|setx|env|arg)\s+)?[a-z0-9_.-]*{_TELLING_NAME}[ \t]*[:=][ \t]*)"
    rf"({_VALUE})[ \t]*,?(?m:$)",
    rf"({_TELLING_NAME}:[ \t]+)({_MIXED}*[0-9]{_MIXED}{{7,}}|{_MIXED}{{7,}}[0-9]{_MIXED}*)",
    rf"(<[a-z0-9_.:-]*{_TELLING_NAME}>)([^<\s]+)<",
)
LABELLED = f"(?i)(?:{'|'.join((*FIRM, *LOOSE))})".encode()

LABEL_HINTS = (
    rb"(?i:pass|pwd|token|secret|key|cred|cookie|auth|bearer|basic|jwt|private|ssws|identified|bindpw|(?:sess[a-z_-]*|\.sid)="
    rb"|[?&;](?:sig|x-|code|hmac)|://[^\s/\"'`]*@|jdbc:oracle|:(?:54[0-9]{2}|6432|\*):| -[upaw]| --(?:proxy-)?user)"
)
HINTS = LABEL_HINTS + b"|" + TOKEN_HINTS

_WORDS_PATTERN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TELLING = _words(
    "password passwd passphrase passcode pwd secret secrets token authorization cookie cookies credential credentials"
    " apikey accesskey privatekey secretkey accesstoken authtoken refreshtoken clientsecret bearer jwt"
)
_KEYS = _words("api private access secret signing encryption auth ssh account")
_HARMLESS_AFTER = _words(
    "count counts limit limits length len size type types name names id ids budget usage used path file policy expiry"
    " expires expired ttl url uri field rate window version index required enabled"
)
_HARMLESS_BEFORE = _words("max min num n total")


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is a secret. Whole words count: `api_key` and `authToken`, not `max_tokens`."""
    words = [word.lower() for word in _WORDS_PATTERN.findall(name)]
    if words == ["pass"]:
        return True
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        is_secret = word in _TELLING or (word == "key" and before in _KEYS)
        if is_secret and after not in _HARMLESS_AFTER and before not in _HARMLESS_BEFORE:
            return True
    return False


_PLAIN = _words(
    "none null nil true false yes no str string bytes int bool any object text optional required undefined default"
    " self cls this input prompt auto env ask empty unset missing invalid unknown redacted hidden lambda await not"
)
_PLACEHOLDER = (
    r"(?:(?:basic|bearer|token|digest)\s+)?(?:\$\{.*|\$\(.*|\$[a-z_]\w*|\{\{.*|<.*|%[(\w].*|@\w+@)"  # filled in later
    r"|[,;+)\s|].*"  # the quote before it was a closing one
    r"|[\[\](){}<>*.,:|#x-]*"
    r"|[0-9]{1,3}[,)]?|[0-9]+(?:\.[0-9]+)+|#[0-9a-f]{3,8}|."  # a number, a version, a colour, a single character
)
_CODE = (
    r"[A-Za-z_]+(?:\.[A-Za-z_]+)+[,):\]]*"  # self.password
    r"|[a-z_]*(?:pass|pwd|secret|token|key|cred|auth)[a-z_]*[,):\]]*"  # token=auth_token
    r"|[A-Za-z_][\w.]*[(\[{].*"  # a call, a subscript, a type with parameters
    r"|[(\[{].*"
    r"|[A-Z][a-z]+(?:[A-Z][a-z]+)*[,)]?"  # a class
)


@cache
def _compiled() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compiled when first needed: most runs never are."""
    return re.compile(_PLACEHOLDER, re.IGNORECASE), re.compile(_CODE)


def is_value(name: str, value: str) -> bool:
    """Whether the text after a secret's name may be its value: neither code, nor a placeholder, nor a directory.

    Names in capitals are those of environment variables; their values are never code.
    """
    placeholder, code = _compiled()
    if value.strip(".,:;)]}").lower() in _PLAIN or placeholder.fullmatch(value):
        return False
    if name.upper().rstrip("='\"").endswith(("PWD", "CWD")) and value.startswith(("/", "~")):
        return False
    return name.rstrip("='\" ").isupper() or not code.fullmatch(value)
