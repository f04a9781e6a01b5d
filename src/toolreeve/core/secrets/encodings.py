"""Encodings of a secret: plain, JSON, URL, base64 and hexadecimal."""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote_from_bytes

SHORTEST = 4
SHORTEST_ENCODED = 6
LONGEST_HINT = 64
_RUN = re.compile(rb"[A-Za-z0-9_-]{4,}")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")


def forms(secret: str) -> Iterator[bytes]:
    """Every form worth searching for. Encoded forms of very short secrets would match by chance."""
    plain = secret.encode("utf-8", "surrogatepass")
    yield plain
    if (stripped := secret.strip()) != secret and len(stripped) >= SHORTEST:
        yield from forms(stripped)
    yield from _in_json(secret)
    if len(secret) >= SHORTEST_ENCODED:
        yield from _in_urls(plain)
        yield from in_base64(plain)
        yield plain.hex().encode()
        yield plain.hex().upper().encode()


def _in_json(secret: str) -> Iterator[bytes]:
    for ascii_only in (True, False):
        written = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield written.encode("utf-8", "surrogatepass")
        yield json.dumps(written)[1:-1].encode("utf-8", "surrogatepass")


def _in_urls(plain: bytes) -> Iterator[bytes]:
    for safe in ("", "/"):
        quoted = quote_from_bytes(plain, safe=safe)
        for written in (quoted, quoted.replace("%20", "+")):
            yield written.encode()
            yield _ESCAPE.sub(lambda found: found[0].lower(), written).encode()


def in_base64(plain: bytes) -> Iterator[bytes]:
    """Inside a longer text a secret starts at any of three offsets of a group; characters shared with neighbours are
    left out."""
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + plain)
        inner = encoded[(0, 2, 3)[shift] : (shift + len(plain)) * 8 // 6]
        for written in (encoded.rstrip(b"="), inner) if shift == 0 else (inner,):
            yield written
            yield written.translate(_URL_SAFE)


def hint(form: bytes) -> bytes | None:
    """A part of `form` that further escaping leaves unchanged; None if there is none."""
    runs: list[bytes] = _RUN.findall(form)
    return max(runs, key=len)[:LONGEST_HINT] if runs else None
