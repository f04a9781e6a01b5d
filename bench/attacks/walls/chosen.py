"""The probes of all modules, in the order in which they are shown."""

import importlib

from bench.attacks.walls.ground import PROBES, Probe

MODULES = (
    "tier",
    "planted",
    "covers",
    "git_readers",
    "repositories",
    "quarantine",
    "kernel",
    "roads",
    "limits",
    "values",
    "proxy",
    "records",
    "door",
)


def probes(*, fast: bool = False, only: str = "", alone: bool = False) -> list[Probe]:
    """`only` keeps those whose finding or name holds the text; `alone` chooses those that others cannot run beside."""
    for name in MODULES:
        importlib.import_module(f"bench.attacks.walls.{name}")
    wanted = [each for each in PROBES if only in f"{each.finding} {each.name}" and each.alone == alone]
    return [each for each in wanted if each.fast or not fast]
