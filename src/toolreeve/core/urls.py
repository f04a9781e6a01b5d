"""URL parsing as browsers do it; ambiguous URLs are refused.

The road, the guard and the proxy all decide on the `Target` made here, and only its canonical form is ever sent. A
number is an address in every spelling that glibc or a browser accepts, whatever its base, digits or dots.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlencode, urljoin

from toolreeve.core.errors import ErrorCode, ToolError

Address = IPv4Address | IPv6Address
MAX_LENGTH = 8192
DEFAULT_PORTS = {"http": 80, "https": 443}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"//([^/?#]*)([^#]*)")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_PLAIN_URL = re.compile(r"(https?)://((?:[a-z0-9-]{1,63}\.)+[a-z]{2,63})((?:/[A-Za-z0-9/._~!$&'()*+,;=:@-]*)?)")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE = re.compile(r"[^A-Za-z0-9/._~!$&'()*+,;=:@?%\[\]-]")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Target:
    """`host` is lower-case ASCII without a final dot, or the canonical address; `path` begins with a slash and carries
    the query."""

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None = None

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS.get(self.scheme) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def forbidden(message: str, *, detail: object = None) -> ToolError:
    return ToolError(ErrorCode.URL_FORBIDDEN, message, detail=detail)


def parse_url(text: str) -> Target:
    """Raises ToolError(URL_FORBIDDEN) for anything but an unambiguous http or https URL."""
    if len(text) > MAX_LENGTH:
        raise forbidden(f"the URL is longer than {MAX_LENGTH} characters")
    if plain := _PLAIN_URL.fullmatch(text):
        scheme, host, path = plain.groups()
        if len(host) <= 253 and _NAME.fullmatch(host):
            return Target(scheme, host, DEFAULT_PORTS[scheme], path or "/")
    return _parse_carefully(text.strip(" \t\r\n"))


def _parse_carefully(text: str) -> Target:
    if _CONTROL.search(text):
        raise forbidden(f"the URL {text!r} contains a control character")
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if found is None or scheme not in DEFAULT_PORTS:
        raise forbidden(f"only http:// and https:// URLs are allowed, got {text[:200]!r}")
    rest = _AUTHORITY.fullmatch(text.partition("#")[0], found.end())
    if rest is None or not rest[1]:
        raise forbidden(f"the URL {text[:200]!r} names no host right after '//'")
    host, port = _split_authority(rest[1])
    name, address = parse_host(host)
    return Target(scheme, name, parse_port(port, scheme), _canonical_path(rest[2]), address)


def _split_authority(authority: str) -> tuple[str, str]:
    if "\\" in authority:
        raise forbidden(f"the URL has a backslash before its path ({authority!r}): parsers disagree about its host")
    if "@" in authority:
        raise forbidden("credentials in URLs are refused; send an Authorization header instead")
    if authority.startswith("["):
        inside, bracket, port = authority.partition("]")
        if not bracket or port[:1] not in ("", ":"):
            raise forbidden(f"{authority!r} is not a host")
        return inside + bracket, port[1:]
    host, _, port = authority.partition(":")
    if ":" in port:
        raise forbidden(f"{authority!r} is not a host and a port; write an IPv6 address in brackets")
    return host, port


def parse_port(text: str, scheme: str) -> int:
    if not text:
        return DEFAULT_PORTS[scheme]
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or not 0 < int(text) < 65536:
        raise forbidden(f"{text[:20]!r} is not a port")
    return int(text)


@lru_cache(maxsize=512)
def parse_host(text: str) -> tuple[str, Address | None]:
    """The canonical host, and its address if it is one. Raises ToolError(URL_FORBIDDEN)."""
    if text.startswith("["):
        return _parse_ipv6(text[1:-1] if text.endswith("]") else text[1:])
    host = _unquote(text) if "%" in text else text
    host = host.lower() if host.isascii() else _to_ascii(host)
    host = host.removesuffix(".")
    if _NUMERIC.fullmatch(host.rpartition(".")[2]):
        address = _parse_ipv4(host)
        return str(address), address
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise forbidden(f"{text[:260]!r} is not a host name")
    return host, None


def _parse_ipv6(text: str) -> tuple[str, Address]:
    if "%" in text:
        raise forbidden(f"the address [{text}] names a network zone, which only local addresses have")
    try:
        address = IPv6Address(text)
    except ValueError:
        raise forbidden(f"[{text[:100]}] is not an IPv6 address") from None
    return address.compressed, address


def _parse_ipv4(host: str) -> IPv4Address:
    """One to four numbers, each decimal, octal or hexadecimal; the last fills all the bytes that remain."""
    parts = host.split(".")
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        raise forbidden(f"{host[:260]!r} ends in a number but is not an IPv4 address") from None
    *leading, last = numbers
    if len(parts) > 4 or any(number > 255 for number in leading) or last >= 256 ** (5 - len(parts)):
        raise forbidden(f"{host[:260]!r} overflows an IPv4 address")
    value = last
    for place, number in enumerate(leading):
        value += number << (24 - 8 * place)
    return IPv4Address(value)


def _number(text: str) -> int:
    if len(text) > 100 or not text.isascii() or not text.isalnum():
        raise ValueError(text)
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8) if text.startswith("0") else int(text, 10)


def _unquote(text: str) -> str:
    if _BAD_PERCENT.search(text):
        raise forbidden(f"{text[:260]!r} is not a host name")
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise forbidden(f"{text[:260]!r} is not a host name") from None
    if "%" in decoded or _CONTROL.search(decoded):
        raise forbidden(f"{text[:260]!r} is not a host name")
    return decoded


def _to_ascii(host: str) -> str:
    """The host as IDNA (UTS 46) maps it. A number in digits that IDNA keeps is refused: some resolvers do read it."""
    import idna

    try:
        mapped = idna.uts46_remap(host, std3_rules=False, transitional=False)
        if _in_foreign_digits(mapped):
            raise forbidden(f"{host[:260]!r} writes a number in digits other than 0 to 9")
        return ".".join(_to_label(label) for label in mapped.split("."))
    except (idna.IDNAError, UnicodeError, ValueError):
        raise forbidden(f"{host[:260]!r} is not a host name") from None


def _to_label(text: str) -> str:
    return text if text.isascii() else f"xn--{text.encode('punycode').decode()}"


def _in_foreign_digits(host: str) -> bool:
    if host.isascii():
        return False
    digits = "".join(_ascii_digit(character) for character in host).removesuffix(".")
    last = digits.rpartition(".")[2]
    return _NUMERIC.fullmatch(last) is not None


def _ascii_digit(character: str) -> str:
    value = unicodedata.digit(character, None)
    return character if value is None else str(value)


def _canonical_path(text: str) -> str:
    path = text if text.startswith("/") else f"/{text}"
    path = _BAD_PERCENT.sub("%25", path)
    if not _UNSAFE.search(path):
        return path
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), path)


def join_url(base: str, reference: str) -> str:
    """The reference resolved against the base; unchanged if that fails. The result is still unchecked."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def encode_form(fields: Mapping[str, Any]) -> bytes:
    return urlencode(fields, doseq=True).encode()


def encode_segment(text: str) -> str:
    """One segment of a path, whatever the text holds: `..` and slashes lead nowhere else. Raises ToolError for one that
    would vanish."""
    if text in ("", ".", ".."):
        raise ToolError(ErrorCode.INVALID_PARAMS, f"{text!r} is not an identifier")
    return quote(text, safe="", errors="replace")
