"""Which cookies go with this request? Those that the same host set in the same session, and no others.

A cookie never leaves the host that set it, whatever its Domain says, and never outlives or crosses its session.
"""

from collections import OrderedDict
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from toolreeve.core.urls import Target

SESSIONS = 256
COOKIES_PER_HOST = 50
HOSTS_PER_SESSION = 100
MAX_SIZE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    name: str
    value: str
    path: str
    secure: bool
    expires: float | None

    def suits(self, target: Target, now: float) -> bool:
        path = target.path.partition("?")[0]
        inside = path == self.path or path.startswith(self.path if self.path.endswith("/") else f"{self.path}/")
        fresh = self.expires is None or self.expires > now
        return inside and fresh and (target.scheme == "https" or not self.secure)


class CookieJars:
    """One jar for each session, in memory; the sessions least lately used are forgotten."""

    def __init__(self) -> None:
        self._jars: OrderedDict[str, dict[str, dict[tuple[str, str], Cookie]]] = OrderedDict()

    def header(self, session: str, target: Target, now: float) -> str:
        jar = self._jars.get(session)
        kept = jar.get(target.host) if jar else None
        if not kept:
            return ""
        suiting = [cookie for cookie in kept.values() if cookie.suits(target, now)]
        suiting.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in suiting)

    def keep(self, session: str, target: Target, line: str, now: float) -> None:
        """Take in one Set-Cookie line; a malformed or oversized one is ignored, as browsers do."""
        cookie = parse_cookie(line, target, now)
        if cookie is None:
            return
        kept = self._cookies_of(session, target.host)
        kept.pop((cookie.name, cookie.path), None)
        if cookie.expires is None or cookie.expires > now:
            kept[cookie.name, cookie.path] = cookie
        while len(kept) > COOKIES_PER_HOST:
            del kept[next(iter(kept))]

    def forget(self, session: str) -> None:
        self._jars.pop(session, None)

    def _cookies_of(self, session: str, host: str) -> dict[tuple[str, str], Cookie]:
        jar = self._jars.setdefault(session, {})
        self._jars.move_to_end(session)
        while len(self._jars) > SESSIONS:
            self._jars.popitem(last=False)
        if host not in jar and len(jar) >= HOSTS_PER_SESSION:
            del jar[next(iter(jar))]
        return jar.setdefault(host, {})


def parse_cookie(line: str, target: Target, now: float) -> Cookie | None:
    pair, *attributes = line.split(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not equals or not name or len(pair) > MAX_SIZE or not pair.isascii() or not pair.isprintable():
        return None
    given = {key.strip().lower(): text.strip() for key, _, text in (each.partition("=") for each in attributes)}
    secure = "secure" in given
    if secure and target.scheme != "https":
        return None
    path = given.get("path", "")
    return Cookie(
        name=name,
        value=value,
        path=path if path.startswith("/") else _default_path(target),
        secure=secure,
        expires=_expires(given, now),
    )


def _default_path(target: Target) -> str:
    return target.path.partition("?")[0].rpartition("/")[0] or "/"


def _expires(given: dict[str, str], now: float) -> float | None:
    age = given.get("max-age", "")
    if age.lstrip("-").isdecimal() and len(age) < 12:
        return now + int(age)
    try:
        return parsedate_to_datetime(given["expires"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
