"""Sessions of modern HTTP clients: a header, a cookie, or the connection.

A request of the modern era carries no session, and a credential is not one: several agents may share it. A session
belongs to one client instance, known by the `Toolreeve-Session` header that it sends, else by the cookie that it was
given, else by its connection. A connection that a proxy may share among clients identifies nobody: without a header or
cookie, each request on it is a session of its own. The id is a digest: knowing it from the record does not open it.
Two programs may send the same header, but a cookie is ours: only those sessions share grants across processes.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from toolreeve.serve.access import Header
from toolreeve.serve.tokens import Credential

HEADER = b"toolreeve-session"
COOKIE = b"toolreeve_session"
LONGEST_HEADER = 200
_ISSUED = "mcp-"
_NAMED = "mcp-named-"
_COOKIE = re.compile(rb"(?:^|;)\s*" + COOKIE + rb"=([0-9a-f]{32})(?=\s*(?:;|$))")
_FORWARDED = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
)


class SessionConnection(Protocol):
    """A connection remembers the key of its client."""

    session_key: bytes


class ClientSession(NamedTuple):
    """`headers` of the response give a cookie to a client that has none."""

    id: str
    headers: tuple[Header, ...] = ()


def find_session(headers: Iterable[Header], connection: SessionConnection, credential: Credential) -> ClientSession:
    shown = b""
    cookie = b""
    forwarded = False
    for name, value in headers:
        if name == HEADER:
            shown = value[:LONGEST_HEADER]
        elif name == b"cookie":
            cookie += b";" + value
        elif name in _FORWARDED:
            forwarded = True
    if shown:
        return ClientSession(_session_id(_NAMED, shown, credential))
    if found := _COOKIE.search(cookie):
        return ClientSession(_session_id(_ISSUED, found[1], credential))
    key = b"" if forwarded else connection.session_key
    if not key:
        key = secrets.token_hex(16).encode()
        if not forwarded:
            connection.session_key = key
    offer = (b"set-cookie", b"%s=%s; Path=/mcp; HttpOnly; SameSite=Strict" % (COOKIE, key))
    return ClientSession(_session_id(_ISSUED, key, credential), (offer,))


def legacy_session(number: str, credential: Credential) -> str:
    """The session of a client with this Mcp-Session-Id, at whichever gateway."""
    return _session_id(_ISSUED, number.encode(), credential)


def is_issued(session: str) -> bool:
    """Whether we named the session, for one client instance that may outlive this process."""
    return session.startswith(_ISSUED) and not session.startswith(_NAMED)


def _session_id(prefix: str, key: bytes, credential: Credential) -> str:
    known = hashlib.sha256(b"\0".join((prefix.encode(), credential.id.encode(), key))).hexdigest()
    return f"{prefix}{known[:24]}"
