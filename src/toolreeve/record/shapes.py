"""What do secrets look like? Keys by their well-known beginnings, values by the name that stands before them.

All patterns are for RE2, over bytes. `HINTS` must match wherever one of the others, or a telling name, could.
"""

import re

SHAPES = b"|".join(
    (
        rb"\bsk-[A-Za-z0-9_-]{16,}",
        rb"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
        rb"\bgh[pousr]_[A-Za-z0-9]{16,}",
        rb"\bgithub_pat_[A-Za-z0-9_]{16,}",
        rb"\bglpat-[A-Za-z0-9_-]{16,}",
        rb"\bxox[a-z]-[A-Za-z0-9-]{10,}",
        rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        rb"\bAIza[A-Za-z0-9_-]{30,}",
        rb"\bya29\.[A-Za-z0-9_-]{20,}",
        rb"\b(?:npm|hf)_[A-Za-z0-9]{30,}",
        rb"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
        rb"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    )
)

_NAME = (
    rb"(?:\b|_)(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    rb"|secret[_-]?key|credentials?|authorization)"
)
_QUOTE = rb"\\*[\"']"

# Group 1 stays before the mark, group 2 after it.
LABELLED = (
    rb"(?i)(" + _NAME + rb"=(?:" + _QUOTE + rb")?)[^\s\"'&;\\]+()",
    rb"(?i)(" + _NAME + _QUOTE + rb"\s*:\s*" + _QUOTE + rb")[^\"'\\]+()",
    rb"(?i)(--(?:[a-z0-9]+-)*(?:password|passwd|passphrase|secret|token|api-?key|access-?key)\s+)[^\s\"'-][^\s\"']*()",
    rb"(?i)(\b(?:proxy-)?authorization\s*:\s*(?:(?:basic|bearer|digest|token)\s+)?)[^\s\"',;]+()",
    rb"(?i)(\b(?:set-)?cookie\s*:\s*)[^\r\n\"']+()",
    rb"(?i)(\bx-[a-z0-9-]*(?:key|token|secret)\s*:\s*)[^\s\"']+()",
    rb"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}()",
    rb"(?i)(\b[a-z][a-z0-9+.-]*://[^\s/:@\"']*:)[^\s/@\"']+(@)",
)

HINTS = (
    rb"(?i)pass|pwd|token|secret|key|cred|cookie|auth|bearer|jwt|private|sk[-_]|rk_|gh[pousr]_|github_pat|glpat|xox"
    rb"|akia|asia|aiza|ya29|npm_|hf_|eyj|://[^\s/\"']*@"
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TELLING = _words(
    "password passwd passphrase passcode pwd secret secrets token authorization cookie cookies credential credentials"
    " apikey accesskey privatekey secretkey accesstoken authtoken refreshtoken clientsecret bearer jwt"
)
_KEYS = _words("api private access secret signing encryption auth ssh")
_HARMLESS_AFTER = _words(
    "count counts limit limits length len size type types name names id ids budget usage used path file policy expiry"
    " expires expired ttl url uri field rate window version index required enabled"
)
_HARMLESS_BEFORE = _words("max min num n total")


def is_telling(name: str) -> bool:
    """Whether a value under this name is a secret. Whole words count: `api_key` and `authToken`, not `max_tokens`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if words == ["pass"]:
        return True
    for place, word in enumerate(words):
        before, after = words[place - 1] if place else "", words[place + 1] if place + 1 < len(words) else ""
        tells = word in _TELLING or (word == "key" and before in _KEYS)
        if tells and after not in _HARMLESS_AFTER and before not in _HARMLESS_BEFORE:
            return True
    return False
