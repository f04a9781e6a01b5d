"""The catalogue of probes, in the order of the table."""

import importlib

from bench.attacks.probes.testbed import PROBES, Probe

MODULES = (
    "tier",
    "plants",
    "covers",
    "git_readers",
    "repositories",
    "quarantine",
    "kernel",
    "entry_points",
    "limits",
    "values",
    "proxy",
    "records",
    "door",
)


def probes(*, fast: bool = False, only: str = "", alone: bool = False) -> list[Probe]:
    """`only` keeps those whose finding or name holds the text; `alone` chooses those that others cannot run beside."""
    for name in MODULES:
        importlib.import_module(f"bench.attacks.probes.{name}")
    wanted = [each for each in PROBES if only in f"{each.finding} {each.name}" and each.alone == alone]
    return [each for each in wanted if each.fast or not fast]
