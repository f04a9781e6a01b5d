"""The fast probes of the walls suite, so that none of them rots: each runs, and none gets through."""

import pytest
from bench.attacks.walls import chosen
from bench.attacks.walls.suite import replay


async def test_no_fast_probe_gets_through(capsys: pytest.CaptureFixture[str]) -> None:
    tallies = await replay(fast=True)

    shown = capsys.readouterr().out
    assert [tally.escaped for tally in tallies] == [[] for _ in tallies], shown
    assert all(tally.attempts == len(chosen.probes(fast=True)) for tally in tallies)
