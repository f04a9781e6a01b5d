"""Token patterns: secrets recognised by their prefixes.

Patterns are for RE2, over bytes. `TOKEN_HINTS` must match wherever `SHAPES` could; it is made from the same tables, so
that a new row cannot be forgotten there.
"""

import re

ALNUM = "[A-Za-z0-9]"
WORD = "[A-Za-z0-9_-]"
HEX = "[0-9a-f]"
UPPER = "[A-Z0-9]"
LOWER = "[a-z0-9]"
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
    (BASE64, 40, "ops_eyJ dG9rO"),
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
    (r"dt0[a-z][0-9]{2}\.", rf"dt0[a-z][0-9]{{2}}\.{UPPER}{{24}}\.{UPPER}{{30,}}"),
    ("glsa_", rf"glsa_{ALNUM}{{32}}_{HEX}{{8}}"),
    (r"\.atlasv1\.", rf"{ALNUM}{{14}}\.atlasv1\.{WORD}{{40,}}"),
    (f"A3-{UPPER}{{6}}-", rf"A3-{UPPER}{{6}}-(?:{UPPER}{{5,11}}-?){{3,5}}"),
    (rf"pat{ALNUM}{{14}}\.", rf"pat{ALNUM}{{14}}\.{HEX}{{30,}}"),
    (rf"pat\.{WORD}{{4}}", rf"pat\.{WORD}{{22}}\.{HEX}{{24}}\.{ALNUM}{{20}}"),
    ("pat-(?:na|eu|ap)", rf"pat-(?:na|eu|ap)[0-9]-{UUID}"),
    (":AA", rf"(?:bot)?[0-9]{{8,10}}:AA{WORD}{{32,}}"),
    (f"AAAA{WORD}{{7}}:", rf"AAAA{WORD}{{7}}:{WORD}{{40,}}"),
    ("AAAAAAAA", r"A{20,}[A-Za-z0-9%]{40,}"),
    (rf"\.{WORD}{{6}}\.{WORD}{{16}}", rf"[MNO]{WORD}{{23,25}}\.{WORD}{{6}}\.{WORD}{{27,}}"),
    ("Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}"),
    ("AZDO", rf"{ALNUM}{{30,}}AZDO{ALNUM}{{4}}\b"),
    ("JQQJ99", rf"{ALNUM}{{30,}}JQQJ99{ALNUM}{{20,}}"),
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
    (rf"v1\.0-{HEX}{{8}}", rf"v1\.0-{HEX}{{24}}-{HEX}{{40,}}"),
    (rf"t1\.{BASE64}{{8}}", rf"t1\.{BASE64}{{8,}}\.{BASE64}{{40,}}"),
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


def _any_of(beginnings: str) -> str:
    return "|".join(map(re.escape, beginnings.split()))


def _hints(alphabet: str, beginnings: str) -> str:
    """The prefixes; the short ones, which also occur in ordinary words, with four more characters."""
    return "|".join(
        re.escape(each) if len(each) >= _DISTINCTIVE else f"{re.escape(each)}{alphabet}{{4}}"
        for each in beginnings.split()
    )


_DISTINCTIVE = 6
_TOKEN_SHAPES = [f"(?:{_any_of(beginnings)}){alphabet}{{{fewest},}}" for alphabet, fewest, beginnings in TOKENS]
_TOKEN_HINTS = [_hints(alphabet, beginnings) for alphabet, _, beginnings in TOKENS]
_BOUNDED = "|".join((*_TOKEN_SHAPES, *(whole for _, whole in SINGLE)))
SHAPES = "|".join((*BLOCKS, f"{_BEGIN}(?:{_BOUNDED})")).encode()
TOKEN_HINTS = "|".join((*_TOKEN_HINTS, *(part for part, _ in SINGLE))).encode()
