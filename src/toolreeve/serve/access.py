"""May this HTTP request come in? Its Host, its Origin and its token are looked at before anything else is.

A web page can make a browser send requests here, under a name of its choice (DNS rebinding). So the Host must be one
that we go by, an Origin must be ours or a configured one, and where tokens are configured one must be shown. Whatever
appears twice, or not at all where it must, is refused.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from toolreeve.serve.tokens import ANONYMOUS, Credential, Tokens

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?")
_CHECKED = (b"host", b"origin", b"authorization")

Header = tuple[bytes, bytes]


class AccessRefused(Exception):
    """A request does not come in: with this status, for this reason, and perhaps a hint in a header."""

    def __init__(self, status: int, reason: str, headers: Sequence[Header] = ()) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """`hosts` are names, without ports, that requests may be for; `origins` are web pages that may send them.
    `addresses` lets in whatever is for a bare address: rebinding needs a name."""

    tokens: Tokens = field(default_factory=Tokens)
    hosts: Collection[str] = LOOPBACK
    origins: Collection[str] = ()
    addresses: bool = False

    def admit(self, headers: Iterable[Header]) -> Credential:
        """Raises Refused."""
        shown = self._checked(headers)
        return self._identify(shown.get(b"authorization")) if self.tokens else ANONYMOUS

    def allowed_origin(self, headers: Iterable[Header]) -> bytes | None:
        """The configured web page that sends this, if one does; no token is asked for. Raises Refused."""
        if not self.origins:
            return None
        origin = self._checked(headers).get(b"origin")
        return origin if origin is not None and origin.decode("latin-1").lower() in self.origins else None

    def _checked(self, headers: Iterable[Header]) -> dict[bytes, bytes]:
        shown = _read_once(headers)
        host = self._check_host(shown.get(b"host", b""))
        if (origin := shown.get(b"origin")) is not None:
            self._check_origin(origin, host)
        return shown

    def _check_host(self, given: bytes) -> str:
        host = given.decode("latin-1").lower()
        named = _HOST.fullmatch(host)
        if named is None or not (named[1] in self.hosts or (self.addresses and _is_address(named[1]))):
            raise AccessRefused(421, "Invalid Host header")
        return host

    def _check_origin(self, given: bytes, host: str) -> None:
        origin = given.decode("latin-1").lower()
        if origin not in self.origins and origin not in (f"http://{host}", f"https://{host}"):
            raise AccessRefused(403, "Invalid Origin header")

    def _identify(self, authorization: bytes | None) -> Credential:
        if authorization is None:
            raise AccessRefused(401, "a bearer token is needed", [(b"www-authenticate", b'Bearer realm="toolreeve"')])
        found = self.tokens.find(authorization)
        if found is None:
            hint = b'Bearer realm="toolreeve", error="invalid_token"'
            raise AccessRefused(401, "this token is not known here", [(b"www-authenticate", hint)])
        return found


def new_access_control(
    host: str, tokens: Tokens, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()
) -> AccessControl:
    """The gate of a server that listens on `host`."""
    own = f"[{host}]" if ":" in host else host
    return AccessControl(
        tokens=tokens,
        hosts=LOOPBACK | {own.lower()} | {each.lower() for each in hosts},
        origins=frozenset(each.lower().rstrip("/") for each in origins),
        addresses=not is_loopback(host),
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there. A name that is not known to be so is not."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _read_once(headers: Iterable[Header]) -> dict[bytes, bytes]:
    shown: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _CHECKED:
            if name in shown:
                raise AccessRefused(400, f"the {name.decode()} header appears more than once")
            shown[name] = value
    return shown


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
