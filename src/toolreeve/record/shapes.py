"""Shapes of secrets: tokens by their well-known beginnings, values by what stands before them.

All patterns are for RE2, over bytes. `HINTS` must match wherever one of the others, or a telling name, could; it is made
from the same tables, so that a new row cannot be forgotten there.
"""

import re

ALNUM, WORD, HEX, UPPER, LOWER = "[A-Za-z0-9]", "[A-Za-z0-9_-]", "[0-9a-f]", "[A-Z0-9]", "[a-z0-9]"
BASE64 = "[A-Za-z0-9+/=_-]"
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

# How many characters of which alphabet follow these beginnings at least.
TOKENS: tuple[tuple[str, int, str], ...] = (
    (ALNUM, 10, "sk_live_ sk_test_ rk_live_ rk_test_"),
    (ALNUM, 16, "ghp_ gho_ ghu_ ghs_ ghr_"),
    (WORD, 16, "github_pat_ glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- GR1348941"),
    (WORD, 16, "GOCSPX- sq0atp- sq0csp- dckr_pat_ dckr_oat_ whsec_ sb_secret_ tskey-auth- tskey-api- tskey-client-"),
    (WORD, 20, "ya29. hvs. hvb. hvr. xapp- tvly- nvapi- pcsk_ pscale_tkn_ pscale_pw_ pscale_oauth_ shpua_ napi_ xoxe."),
    (WORD, 20, "CCIPAT_ CCIPRJ_ HRKU- FLWSECK- FLWSECK_TEST- secret-live- secret-test- mdb_sa_sk_ zpka_ AVNS_ cfut_"),
    (WORD, 30, "AIza figd_ CFPAT- fio-u- phx_ tgp_v1_ duffel_live_ duffel_test_ dp.pt. dp.st. dp.ct. dp.sa. dp.scim."),
    (WORD, 30, "dp.audit. tfp_ sntrys_ sntryu_ y0_ AQVN vercel_blob_rw_ hcaik_ hcaic_ hcxik_ hcxlk_ dbtc_ dbtu_ sl.u."),
    (WORD, 40, "lsv2_pt_ lsv2_sk_ pypi- ATATT3 ATCTT3 fo1_ fm2_ FlyV1 statsig-"),
    (ALNUM, 30, "npm_ hf_ api_org_ gsk_ r8_ lin_api_ lin_oauth_ nfp_ ntn_ pnu_ pnb_ jina_ EZAK EZTK rpa_ sgp_ secret_"),
    (ALNUM, 40, "xai- pplx- csk- AKCp cmVmd EAAC EAAB EAAG EAAJ xprv"),
    (ALNUM, 20, "ATBB BBDC- NRAK- NRJS- NRII- NRRA- LTAI rnd_ glc_ ico-"),
    (HEX, 32, "shpat_ shpca_ shppa_ shpss_ dop_v1_ doo_v1_ dor_v1_ dapi pul- rubygems_ sbp_ shippo_live_ shippo_test_"),
    (HEX, 32, "sqp_ squ_ sqa_ bkua_ bkaat_ e2b_ slk_ ATTA ls__ fc- key- SK"),
    (LOWER, 32, "CLOJARS_ rdme_ p8e-"),
    (UPPER, 40, "AGE-SECRET-KEY-1"),
    (BASE64, 60, "ops_eyJ dG9rO"),
)
SINGLE: tuple[tuple[str, str], ...] = (  # what always stands in it, and the whole; both are patterns
    (f"sk-{WORD}{{4}}", rf"sk-{WORD}{{16,}}"),
    (f"sk_{HEX}{{4}}", rf"sk_{HEX}{{40,}}"),
    (r"sk\.eyJ", rf"sk\.eyJ{WORD}+\.{WORD}{{16,}}"),
    ("xox[a-z]-", r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("AKIA", rf"AKIA{UPPER}{{16}}\b"),
    ("ASIA", rf"ASIA{UPPER}{{16}}\b"),
    ("ABIA", rf"ABIA{UPPER}{{16}}\b"),
    ("ACCA", rf"ACCA{UPPER}{{16}}\b"),
    ("AKID", rf"AKID{ALNUM}{{32}}\b"),
    ("1//0", rf"1//0{WORD}{{30,}}"),
    ("eyJ", rf"eyJ{WORD}{{8,}}\.{WORD}{{8,}}\.{WORD}*(?:\.{WORD}+)*"),
    (rf"SG\.{WORD}{{4}}", rf"SG\.{WORD}{{16,}}\.{WORD}{{16,}}"),
    ("xkeysib-", rf"xkeysib-{HEX}{{32,}}-{ALNUM}{{10,}}"),
    ("-us[0-9]", rf"{HEX}{{32}}-us[0-9]{{1,2}}\b"),
    ("PMAK-", rf"PMAK-{HEX}{{24}}-{HEX}{{34}}"),
    (r"dt0[a-z][0-9]{2}\.", rf"dt0[a-z][0-9]{{2}}\.{UPPER}{{24}}\.{UPPER}{{64}}"),
    ("glsa_", rf"glsa_{ALNUM}{{32}}_{HEX}{{8}}"),
    (r"\.atlasv1\.", rf"{ALNUM}{{14}}\.atlasv1\.{WORD}{{40,}}"),
    (f"A3-{UPPER}{{6}}-", rf"A3-{UPPER}{{6}}-(?:{UPPER}{{5,11}}-?){{3,5}}"),
    (rf"pat{ALNUM}{{14}}\.", rf"pat{ALNUM}{{14}}\.{HEX}{{64}}"),
    (rf"pat\.{WORD}{{4}}", rf"pat\.{WORD}{{22}}\.{HEX}{{24}}\.{ALNUM}{{20}}"),
    ("pat-(?:na|eu|ap)", rf"pat-(?:na|eu|ap)[0-9]-{UUID}"),
    (":AA", rf"[0-9]{{8,10}}:AA{WORD}{{33}}"),
    (f"AAAA{WORD}{{7}}:", rf"AAAA{WORD}{{7}}:{WORD}{{100,}}"),
    ("AAAAAAAA", r"A{20,}[A-Za-z0-9%]{40,}"),
    (rf"\.{WORD}{{6}}\.{WORD}{{16}}", rf"[MNO]{WORD}{{23,25}}\.{WORD}{{6}}\.{WORD}{{27,}}"),
    ("Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}"),
    ("AZDO", rf"{ALNUM}{{76}}AZDO{ALNUM}{{4}}\b"),
    ("JQQJ99", rf"{ALNUM}{{52}}JQQJ99{ALNUM}{{20,}}"),
    ("sha256~", rf"sha256~{WORD}{{40,}}"),
    ("access-(?:sandbox|development|production)-", rf"access-(?:sandbox|development|production)-{UUID}"),
    (r"access_token\$", rf"access_token\$(?:production|sandbox)\${LOWER}{{16}}\${HEX}{{32}}"),
    (r"amzn\.mws\.", rf"amzn\.mws\.{UUID}"),
    (r"Atza\|", rf"Atza\|{BASE64}{{30,}}"),
    (rf"1000\.{HEX}{{8}}", rf"1000\.{HEX}{{32}}\.{HEX}{{32}}"),
    ("[12]/[0-9]{10}", rf"[12]/[0-9]{{10,}}(?:/[0-9]+)?:{HEX}{{32}}"),
    ("pk_[0-9]{6}", rf"pk_[0-9]{{6,}}_{UPPER}{{32}}"),
    (":fx", rf"{UUID}:fx\b"),
    (f"sdk-{HEX}{{8}}-", rf"sdk-{UUID}"),
    (rf"v1\.0-{HEX}{{8}}", rf"v1\.0-{HEX}{{24}}-{HEX}{{100,}}"),
    (rf"t1\.{BASE64}{{8}}", rf"t1\.{BASE64}{{8,}}\.{BASE64}{{60,}}"),
    (r"hooks\.slack\.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{20,}"),
    ("/api/webhooks/", rf"discord(?:app)?\.com/api/webhooks/[0-9]+/{WORD}{{20,}}"),
    ("/webhookb2/", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{40,}"),
)  # fmt: skip
BLOCKS = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    r"---- BEGIN [A-Z0-9 ]*PRIVATE KEY ----(?s:.*?)(?:---- END [A-Z0-9 ]*PRIVATE KEY ----|\z)",
    r"Private-Lines: *[0-9]+(?:\r?\n[A-Za-z0-9+/=]+)+",
)

_BEGIN = r"(?:\b|\\+[nrt])"
"""A word begins here; also after an escaped newline, as JSON inside a text has it."""


def _escaped(beginnings: str) -> str:
    return "|".join(re.escape(each) for each in beginnings.split())


_TOKEN_SHAPES = [f"(?:{_escaped(beginnings)}){alphabet}{{{fewest},}}" for alphabet, fewest, beginnings in TOKENS]
_TOKEN_HINTS = [f"(?:{_escaped(beginnings)}){alphabet}{{4}}" for alphabet, _, beginnings in TOKENS]
_BOUNDED = "|".join((*_TOKEN_SHAPES, *(whole for _, whole in SINGLE)))
SHAPES = "|".join((*BLOCKS, f"{_BEGIN}(?:{_BOUNDED})")).encode()

_SECRET_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credentials?|authorization|_auth|_pass"
    r"|(?:api|access|account|private|secret|signing|encryption|auth|master|storage|license|webhook)[_.-]?key"
    r"|secret[_-]?key[_-]?base)(?:_?[0-9])?"
)
_QUOTE = r"\\*[\"'`]"
_VALUE = r"[^\s\"'`&;\\\\]+"
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
    r"(\b(?:proxy-)?authorization\s*:\s*(?:(?:basic|bearer|token|apikey|negotiate|ssws|key)\s+)?)([^\s\"',;]+)",
    r"(\b[a-z][a-z0-9+.-]*://[^\s/:@\"'`]*:)([^\s/@\"'`]+)@",
    r"(\b(?:[a-z]*sess(?:ion)?[_-]?id|session|connect\.sid)=)([A-Za-z0-9%+/=_.:-]{16,})",
    rf"({_SECRET_NAME}=(?:{_QUOTE})?)({_VALUE})",
    rf"({_SECRET_NAME}(?:{_QUOTE})?\]?\s*(?::|=>?|:=)\s*{_QUOTE})([^\"'`\\\r\n]+)",
    rf"((?m:^)[\t >+#*-]*(?:(?:export|set|setx|env|arg)\s+)?[a-z0-9_.-]*{_SECRET_NAME}[ \t]*[:=][ \t]*)({_VALUE})[ \t]*,?(?m:$)",
    rf"(<[a-z0-9_.:-]*{_SECRET_NAME}>)([^<\s]+)<",
)
LABELLED = f"(?i)(?:{'|'.join((*FIRM, *LOOSE))})".encode()

TOKEN_HINTS = "|".join((*_TOKEN_HINTS, *(part for part, _ in SINGLE))).encode()
LABEL_HINTS = (
    rb"(?i:pass|pwd|token|secret|key|cred|cookie|auth|bearer|basic|jwt|private|ssws|identified|(?:sess[a-z_-]*|\.sid)="
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


def is_telling(name: str) -> bool:
    """Whether a value under this name is a secret. Whole words count: `api_key` and `authToken`, not `max_tokens`."""
    words = [word.lower() for word in _WORDS_PATTERN.findall(name)]
    if words == ["pass"]:
        return True
    for place, word in enumerate(words):
        before, after = words[place - 1] if place else "", words[place + 1] if place + 1 < len(words) else ""
        tells = word in _TELLING or (word == "key" and before in _KEYS)
        if tells and after not in _HARMLESS_AFTER and before not in _HARMLESS_BEFORE:
            return True
    return False


_PLAIN = _words(
    "none null nil true false yes no str string bytes int bool any object text optional required undefined default"
    " self cls this input prompt auto env ask empty unset missing invalid unknown redacted hidden lambda await not"
)
_PLACEHOLDER = re.compile(
    r"(?:(?:basic|bearer|token|digest)\s+)?(?:\$\{.*|\$\(.*|\$[A-Za-z_]\w*|\{\{.*|<.*|%[(\w].*|@\w+@)"  # filled in later
    r"|[,;+)\s|].*"  # the quote before it was a closing one
    r"|[\[\](){}<>*.,:|#xX-]*"
    r"|[0-9]{1,3}[,)]?|[0-9]+(?:\.[0-9]+)+|#[0-9a-fA-F]{3,8}|.",  # a number, a version, a colour, a single character
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[A-Za-z_]+(?:\.[A-Za-z_]+)+[,):\]]*"  # self.password
    r"|[a-z_]*(?:pass|pwd|secret|token|key|cred|auth)[a-z_]*[,):\]]*"  # token=auth_token
    r"|[A-Za-z_][\w.]*[(\[{].*"  # a call, a subscript, a type with parameters
    r"|[(\[{].*"
    r"|[A-Z][a-z]+(?:[A-Z][a-z]+)*[,)]?"  # a class
)


def is_value(name: str, value: str) -> bool:
    """Whether what stands after a telling name may be its value: neither code, nor a placeholder, nor a directory.

    Names in capitals are those of environment variables; their values are never code.
    """
    if value.strip(".,:;)]}").lower() in _PLAIN or _PLACEHOLDER.fullmatch(value):
        return False
    if name.upper().rstrip("='\"").endswith(("PWD", "CWD")) and value.startswith(("/", "~")):
        return False
    return name.rstrip("='\" ").isupper() or not _CODE.fullmatch(value)
