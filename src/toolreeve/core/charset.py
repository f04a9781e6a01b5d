"""Character encoding detection for HTTP bodies, in the order browsers use.

Byte order mark, then the header, then the page, then what fits. Only web encodings are accepted by name: Python's
registry also holds codecs that are not text (`zip`, `rot13`) or take quadratic time (`punycode`), and a server must not
be able to choose them.
"""

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_LATIN = "cp1252"
_WEB = {
    "utf-8": ("utf-8", "utf8", "unicode-1-1-utf-8"),
    "utf-16-le": ("utf-16", "utf-16le"),
    "utf-16-be": ("utf-16be",),
    _LATIN: ("iso-8859-1", "latin1", "latin-1", "ascii", "us-ascii", "windows-1252", "cp1252", "l1"),
    "cp1250": ("windows-1250", "cp1250"),
    "cp1251": ("windows-1251", "cp1251"),
    "cp1253": ("windows-1253", "cp1253", "iso-8859-7"),
    "cp1254": ("windows-1254", "cp1254", "iso-8859-9"),
    "cp1255": ("windows-1255", "cp1255"),
    "cp1256": ("windows-1256", "cp1256"),
    "cp1257": ("windows-1257", "cp1257"),
    "cp1258": ("windows-1258", "cp1258"),
    "cp874": ("windows-874", "tis-620", "iso-8859-11"),
    "cp866": ("ibm866", "cp866"),
    "koi8_r": ("koi8-r", "koi8"),
    "koi8_u": ("koi8-u",),
    "mac_roman": ("macintosh", "mac"),
    "gb18030": ("gb2312", "gbk", "gb18030", "x-gbk"),
    "big5hkscs": ("big5", "big5-hkscs"),
    "euc_jp": ("euc-jp", "x-euc-jp"),
    "cp932": ("shift_jis", "shift-jis", "sjis", "windows-31j", "x-sjis"),
    "iso2022_jp": ("iso-2022-jp",),
    "cp949": ("euc-kr", "ks_c_5601-1987", "windows-949", "korean"),
}
_CODECS = {label: codec for codec, labels in _WEB.items() for label in labels} | {
    f"iso-8859-{part}": f"iso8859_{part}" for part in (2, 3, 4, 5, 6, 8, 10, 13, 14, 15, 16)
}
_BINARY = re.compile(
    r"\s*(?:image/(?!svg)|audio/|video/|font/|application/(?:octet-stream|pdf|zip|gzip|x-tar|x-gzip|wasm|msword|vnd\.))",
    re.IGNORECASE,
)


def decode_text(body: bytes | bytearray, content_type: str = "", *, cut: bool = False) -> str:
    """Never fails: invalid bytes become U+FFFD. A body that was `cut` may end within a character."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return _decode(memoryview(body)[len(mark) :], codec)
    named = _named(content_type, body)
    if named:
        return _decode(body, named)
    try:
        return body.decode()
    except UnicodeDecodeError as problem:
        if cut and problem.reason == "unexpected end of data":
            return body[: problem.start].decode()
        return _decode(body, _LATIN)


def is_text(body: bytes | bytearray, content_type: str = "") -> bool:
    """Whether it is readable text: neither a binary type nor NUL bytes without a UTF-16 mark."""
    if _BINARY.match(content_type):
        return False
    marked = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or "utf-16" in content_type.lower()
    return marked or b"\0" not in body[:1024]


def _named(content_type: str, body: bytes | bytearray) -> str | None:
    if found := _HEADER.search(content_type):
        return _CODECS.get(found[1].lower())
    if "html" in content_type and (inside := _META.search(body[:4096])):
        codec = _CODECS.get(inside[1].decode("ascii", "replace").lower())
        return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec
    return None


def _decode(body: bytes | bytearray | memoryview, codec: str) -> str:
    return codecs.decode(body, codec, "replace")
