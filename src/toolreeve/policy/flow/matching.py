"""Compares values with texts: strict for vouching, loose for searching.

A value is vouched for only where it stands as a whole, letter by letter: folding lookalikes or escapes there would turn
a stranger's address into one that the user named. Searching for an origin folds all of that away. Everything is linear.
"""

import html
import re
import unicodedata
from urllib.parse import unquote

WORD = re.compile(r"[^\W\d_]{3,}|\d{3,}")
LINK = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'()]{1,2000}|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"
    r"|\b[A-Z]{2}\d{2}[A-Z0-9]{10,30}\b",
    re.IGNORECASE,
)
"""URLs, mail addresses and bank accounts within a text."""
COMMON = frozenset(
    "the and for with from this that please email mail file files meeting event events list user users channel "
    "message messages send her his their them name new all any can you what when about com www http https gmail "
    "hotmail".split()
)
"""Words that name nothing."""
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_PREFIX = re.compile(r"^(?:https?://|mailto:)?(?:www\.)?[#@]?", re.IGNORECASE)
_BEFORE = re.compile(r"[\w@+-]$|\w\.$")
_AFTER = re.compile(r"[\w@]|[-./]\w")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_LOOKALIKES = str.maketrans("аеорсухіӏοαεѕԁјһԛѡ", "aeopcyxiloaesdjhqw")
_URL = re.compile(r"(?:https?://|www\.)|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}(?:[/:?#]|$)", re.IGNORECASE)
_SHORT = 80
_FEW_WORDS = 6


def fold(text: str) -> str:
    """Case and composition folded, nothing else."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).lower()


def loosen(text: str) -> str:
    """Width, lookalikes, invisible characters, percent and entity forms folded away: only to find an origin."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_LOOKALIKES)
    if "%" in text:
        text = unquote(text)
    if "&" in text:
        text = html.unescape(text)
    return text.lower()


def canonical(value: object) -> str:
    """One spelling for each destination: `https://www.X.com/` is `x.com`, 10.0 is `10`."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = fold(str(value)).strip(" \t\n'\"<>")
    return _PREFIX.sub("", text, count=1).rstrip("/.,;:!")


def holds(text: str, value: str) -> bool:
    """Whether the value stands in the text as a whole: `13` is not in `2013`, nor `x.com` in `x.com.evil.org`."""
    at = text.find(value) if value else -1
    while at >= 0:
        end = at + len(value)
        if not _BEFORE.search(text[max(0, at - 2) : at]) and not _AFTER.match(text[end : end + 2]):
            return True
        at = text.find(value, at + 1)
    return False


def spelled_part(value: str) -> str:
    """The part of a URL in which letters of both cases differ: its path and query."""
    bare = value.strip(" \t\n'\"<>")
    bare = _PREFIX.sub("", bare, count=1)
    cut = re.search(r"[/?#]", bare)
    return bare[cut.start() :].rstrip("/.,;:!") if cut and _URL.match(bare) else ""


def host_of(value: str) -> str:
    """The host of a canonical URL, without its port; the value itself if it is a host."""
    rest = re.split(r"[/?#]", value, maxsplit=1)[0].rpartition("@")[2]
    return re.sub(r":\d*$", "", rest)


def number(value: object) -> float | None:
    try:
        return float(str(value).replace(",", ""))
    except ValueError:
        return None


def numbers(text: str) -> set[float | None]:
    return {number(found) for found in _NUMBER.findall(text)}


def is_address(value: str) -> bool:
    """Whether anybody can register such a value: a mail address, a host, a URL."""
    return "@" in value or _URL.match(value) is not None


def is_short(leaf: str) -> bool:
    """Whether a field holds a value, not prose."""
    return len(leaf) <= _SHORT and len(leaf.split()) <= _FEW_WORDS


def words(text: str) -> set[str]:
    """The words of a folded text that name something."""
    return set(WORD.findall(text)) - COMMON
