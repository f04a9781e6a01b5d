"""What was granted for a server, and where is it kept? One file for each server, for the user's eyes alone.

A token belongs to the place it was granted for: a server of the same name at another URL is given none of it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolreeve.core import json
from toolreeve.core.atomic import write_private

FOLDER = "oauth"
MAX_FILE = 1 << 20
Grant = dict[str, Any]
SECRETS: Mapping[str, tuple[str, ...]] = {
    "tokens": ("access_token", "refresh_token", "id_token"),
    "client": ("client_secret", "registration_access_token"),
}


class TokenFile:
    """What is known of one server: `tokens`, `client`, `issuer`, `metadata`, `resource`, `expires_at`."""

    def __init__(self, state: Path, *, server: str, url: str) -> None:
        self._url = url
        self.path = state / FOLDER / f"{_file_name(server)}.json"

    def read(self) -> Grant:
        """Empty where nothing was granted, and where what is there is not ours to use."""
        try:
            if self.path.stat().st_size > MAX_FILE:
                return {}
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) and found.get("url") == self._url else {}

    def exists(self) -> bool:
        return self.path.exists()

    def delete(self) -> None:
        """Raises OSError."""
        self.path.unlink(missing_ok=True)

    def update(self, **changes: Any) -> None:
        """Write atomically, so that who reads meanwhile sees the whole old or the whole new. Raises OSError."""
        write_private(self.path, json.dumps(self.read() | changes | {"url": self._url}))


def secrets_of(grant: Grant) -> Iterator[str]:
    """What nobody but us and those who granted it may see."""
    for part, names in SECRETS.items():
        held = grant.get(part)
        found = map(held.get, names) if isinstance(held, dict) else ()
        yield from (value for value in found if isinstance(value, str) and value)


def _file_name(server: str) -> str:
    """A name that no other server has, whatever stands in it."""
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", server):
        return server
    plain = re.sub(r"[^a-z0-9_-]", "-", server.lower())[:40]
    return f"{plain}.{hashlib.sha256(server.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
