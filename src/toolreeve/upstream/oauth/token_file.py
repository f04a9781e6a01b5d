"""Stores a server's OAuth grant, in one private file per server.

A token belongs to the URL it was granted for: a server of the same name at another URL gets none of it.
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
    """Holds `tokens`, `client`, `issuer`, `metadata`, `resource` and `expires_at` of one server."""

    def __init__(self, state: Path, *, server: str, url: str) -> None:
        self._url = url
        self.path = state / FOLDER / f"{_file_name(server)}.json"

    def read(self) -> Grant:
        """Empty where there is no grant, and where it belongs to another URL."""
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
        """Written atomically: a reader sees the whole old or the whole new. Raises OSError."""
        write_private(self.path, json.dumps(self.read() | changes | {"url": self._url}))


def secrets_of(grant: Grant) -> Iterator[str]:
    """The values to redact."""
    for part, names in SECRETS.items():
        fields = grant.get(part)
        if isinstance(fields, dict):
            values = [fields.get(name) for name in names]
            yield from (value for value in values if isinstance(value, str) and value)


def _file_name(server: str) -> str:
    """Unique for every server name, and safe as a file name."""
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", server):
        return server
    plain = re.sub(r"[^a-z0-9_-]", "-", server.lower())[:40]
    return f"{plain}.{hashlib.sha256(server.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
