"""In which guises does a secret turn up? As it is, and as JSON, URLs, base64 and hexadecimal write it."""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote_from_bytes

SHORTEST = 4
SHORTEST_DISGUISED = 6
_RUN = re.compile(rb"[A-Za-z0-9_-]{4,}")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")


def forms(secret: str) -> Iterator[bytes]:
    """Every spelling worth looking for. Disguises of very short secrets are too common to be told from chance."""
    plain = secret.encode("utf-8", "surrogatepass")
    yield plain
    if (stripped := secret.strip()) != secret and len(stripped) >= SHORTEST:
        yield from forms(stripped)
    yield from _in_json(secret)
    if len(secret) >= SHORTEST_DISGUISED:
        yield from _in_urls(plain)
        yield from _in_base64(plain)
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


def _in_base64(plain: bytes) -> Iterator[bytes]:
    """In a longer text a secret may begin at any of three places of a group; what its neighbours touch is left out."""
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + plain)
        inner = encoded[(0, 2, 3)[shift] : (shift + len(plain)) * 8 // 6]
        for written in (encoded.rstrip(b"="), inner) if shift == 0 else (inner,):
            yield written
            yield written.translate(_URL_SAFE)


def hint(form: bytes) -> bytes | None:
    """A part of `form` that no further escaping changes; None if it has none."""
    runs: list[bytes] = _RUN.findall(form)
    return max(runs, key=len, default=None)
