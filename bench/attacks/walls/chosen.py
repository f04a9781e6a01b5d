"""The probes of all modules, in the order in which they are shown."""

import importlib

from bench.attacks.walls.ground import PROBES, Probe

MODULES = ("tier", "planted", "covers", "git_readers", "repositories", "quarantine", "kernel", "roads", "limits", "values", "proxy", "records", "door")


def probes(*, fast: bool = False, only: str = "") -> list[Probe]:
    """`only` keeps those whose finding or name holds the text."""
    for name in MODULES:
        importlib.import_module(f"bench.attacks.walls.{name}")
    return [each for each in PROBES if (each.fast or not fast) and only in f"{each.finding} {each.name}"]
