"""The fast probes of the attack suite: each runs, and none gets through."""

import pytest
from bench.attacks.probes import catalogue
from bench.attacks.probes.suite import replay


async def test_no_fast_probe_gets_through(capsys: pytest.CaptureFixture[str]) -> None:
    tallies = await replay(fast=True)

    shown = capsys.readouterr().out
    assert [tally.escaped for tally in tallies] == [[] for _ in tallies], shown
    assert all(tally.attempts == len(catalogue.probes(fast=True)) for tally in tallies)
