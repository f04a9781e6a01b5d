"""Servers of tests look for changes often, so that nobody waits for the next look."""

import pytest

from toolreeve.runtime import policy_file
from toolreeve.serve import doors, event_feed
from toolreeve.serve.a2a import board


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_file, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(doors, "TOKEN_CHECK_SECONDS", 0.02)
    monkeypatch.setattr(event_feed, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(board, "POLL_SECONDS", 0.05)
