"""HTTP access control: Host, Origin, token or cookie, checked first.

A web page can make a browser send requests here under a name of its choice (DNS rebinding). So the Host must be one of
ours, an Origin must be ours or a configured one, and if tokens are configured a valid one is required. A header that
appears twice, or is missing where it is required, is refused.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolreeve.core.call import LOCAL, Principal
from toolreeve.serve.tokens import ANONYMOUS, Credential, Tokens

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?")
COOKIE = "toolreeve_console"
_SESSION = re.compile(rb"([0-9a-f]{64})")
_HAS_PORT = re.compile(r":\d{1,5}$")
_CHECKED = (b"host", b"origin", b"authorization")

Header = tuple[bytes, bytes]


class AccessRefused(Exception):
    """A request is refused with this HTTP status, reason and headers."""

    def __init__(self, status: int, reason: str, headers: Sequence[Header] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """`hosts` are the accepted Host names, without ports; `origins` are the accepted origins of web pages. With
    `addresses`, any bare IP address is an accepted Host: rebinding needs a name."""

    tokens: Tokens = field(default_factory=Tokens)
    hosts: Collection[str] = LOOPBACK
    origins: Collection[str] = ()
    addresses: bool = False
    anonymous: Credential = ANONYMOUS
    """Who a request without a token is, where none is required."""

    def admit(self, headers: Iterable[Header], *, cookies: bool = False) -> Credential:
        """With `cookies`, a browser's session counts as well. Raises AccessRefused."""
        checked = self.check(headers)
        authorization = checked.get(b"authorization")
        if cookies and authorization is None and (session := self._find_session(headers, checked)) is not None:
            return session
        return self._identify(authorization) if self.tokens else self.anonymous

    def allowed_origin(self, headers: Iterable[Header]) -> bytes | None:
        """The request's Origin if it is a configured one, else None; needs no token. Raises AccessRefused."""
        if not self.origins:
            return None
        origin = self.check(headers).get(b"origin")
        if origin is None or origin.decode("latin-1").lower() not in self.origins:
            return None
        return origin

    def check(self, headers: Iterable[Header]) -> dict[bytes, bytes]:
        """The checked headers; needs no token. Raises AccessRefused."""
        checked = _read_once(headers)
        host = self._check_host(checked.get(b"host", b""))
        if (origin := checked.get(b"origin")) is not None:
            self._check_origin(origin, host)
        return checked

    def _check_host(self, given: bytes) -> str:
        host = given.decode("latin-1").lower()
        matched = _HOST.fullmatch(host)
        if matched is None or not self._is_own(matched[1]):
            raise AccessRefused(421, "Invalid Host header")
        return host

    def _is_own(self, name: str) -> bool:
        return name in self.hosts or (self.addresses and _is_address(name))

    def _check_origin(self, given: bytes, host: str) -> None:
        origin = given.decode("latin-1").lower()
        if origin not in self.origins and origin not in (f"http://{host}", f"https://{host}"):
            raise AccessRefused(403, "Invalid Origin header")

    def _find_session(self, headers: Iterable[Header], checked: Mapping[bytes, bytes]) -> Credential | None:
        cookies = b";".join(value for name, value in headers if name == b"cookie")
        sent = [each.strip().partition(b"=") for each in cookies.split(b";")]
        host = checked[b"host"].decode("latin-1")
        for name in (cookie_name(host, secure=True), cookie_name(host, secure=False)):
            values = [value for each, _, value in sent if each == name.encode()]
            if len(values) == 1 and _SESSION.fullmatch(values[0]):
                return self.tokens.find_session(values[0])
        return None

    def _identify(self, authorization: bytes | None) -> Credential:
        if authorization is None:
            raise AccessRefused(401, "a bearer token is required", [(b"www-authenticate", b'Bearer realm="toolreeve"')])
        found = self.tokens.find(authorization)
        if found is None:
            hint = b'Bearer realm="toolreeve", error="invalid_token"'
            raise AccessRefused(401, "unknown bearer token", [(b"www-authenticate", hint)])
        return found


def new_access_control(
    host: str,
    tokens: Tokens,
    *,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    local: Principal = LOCAL,
) -> AccessControl:
    """For a server that listens on `host`. `local` is who calls where no token is required."""
    own = f"[{host}]" if ":" in host else host
    return AccessControl(
        tokens=tokens,
        hosts=LOOPBACK | {own.lower()} | {each.lower() for each in hosts},
        origins=frozenset(each.lower().rstrip("/") for each in origins),
        addresses=not is_loopback(host),
        anonymous=replace(ANONYMOUS, principal=local),
    )


def cookie_name(host: str, *, secure: bool) -> str:
    """Of the console at this Host. Cookies go to every port of a host, so that without TLS the port is in the name: a
    server at another port can neither replace the cookie nor be logged in by it. `__Host-` is the browser's own lock
    for that, which needs TLS."""
    if secure:
        return f"__Host-{COOKIE}"
    port = host.rpartition(":")[2] if _HAS_PORT.search(host) else "80"
    return f"{COOKIE}_{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. Of names, only `localhost` counts."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _read_once(headers: Iterable[Header]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _CHECKED:
            if name in found:
                raise AccessRefused(400, f"the {name.decode()} header appears more than once")
            found[name] = value
    return found


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
