"""Remembers which session of an agent continues which of its caller.

An agent that was ended, by a restart or because it was idle, continues its conversation with the next prompt.
"""

import hashlib
import time
from pathlib import Path

from toolreeve.config import Configuration
from toolreeve.core.atomic import write_private

KEPT = 30 * 24 * 3600.0
"""Seconds that a session is remembered after it was last used."""
LONGEST = 1000


class RememberedSession:
    """Of one agent, user and session of the user. The file is none that an agent can reach."""

    def __init__(self, configuration: Configuration, agent: str, user: str, session: str) -> None:
        self._folder = Path(configuration.settings.state.dir) / "acp_sessions"
        digest = hashlib.sha256("\0".join((agent, user, session)).encode()).hexdigest()
        self._file = self._folder / digest

    def read(self) -> str:
        """Empty if there is none."""
        try:
            return self._file.read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def write(self, session: str) -> None:
        if not 0 < len(session) <= LONGEST:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in self._folder.iterdir():
            if each.stat().st_mtime < time.time() - KEPT:
                each.unlink(missing_ok=True)
        write_private(self._file, session.encode())
