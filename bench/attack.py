"""Runs the attack suites against the guards and prints the results.

Exits with 1 if an attack got through or something harmless was refused.

python bench/attack.py [--corpora DIR] [--suite NAME]…
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # as a script, the package `bench` is one level up

from bench.attacks import (
    agentdojo,
    command_line,
    commands,
    evaluators,
    oracles,
    paths,
    replay,
    secrets,
    sessions,
    shell,
    ssrf,
    templates,
)
from bench.attacks.outcome import Tally
from bench.attacks.probes import suite as probes

Suite = Callable[[Path | None], Awaitable[Sequence[Tally]]]
SUITES: Mapping[str, Suite] = {
    "commands": commands.run,
    "paths": paths.run,
    "secrets": secrets.run,
    "shell": shell.run,
    "ssrf": ssrf.run,
    "templates": templates.run,
    "evaluators": evaluators.run,
    "probes": probes.run,
    "replay": replay.run,
    "command_line": command_line.run,
    "sessions": sessions.run,
    "agentdojo": agentdojo.run,
    "argv": oracles.argv,
    "flags": oracles.flags,
}
SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Attack the guards of Toolreeve.")
    parser.add_argument("--corpora", type=Path, help="a directory with further lists of payloads")
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), help="run only this suite")
    options = parser.parse_args(arguments)
    escaped = refused_wrongly = 0
    for name in options.suite or SUITES:
        tallies = asyncio.run(_run(SUITES[name], options.corpora))
        if tallies:
            _show(name, tallies)
        escaped += sum(len(tally.escaped) for tally in tallies)
        refused_wrongly += sum(len(tally.refused_wrongly) for tally in tallies)
    if escaped or refused_wrongly:
        print(f"\n{escaped} escaped, {refused_wrongly} refused wrongly")
        return 1
    print("\nnothing escaped")
    return 0


async def _run(suite: Suite, corpora: Path | None) -> Sequence[Tally]:
    return await suite(corpora)


def _show(name: str, tallies: Sequence[Tally]) -> None:
    width = max(len(tally.name) for tally in tallies)
    print(f"{name:{width}}  payloads  attempts   refused  harmless   escaped   wrongly refused")
    for tally in tallies:
        counts = (tally.payloads, tally.attempts, tally.refused, tally.harmless)
        found = (*counts, len(tally.escaped), len(tally.refused_wrongly))
        print(f"{tally.name:{width}}" + "".join(f"{count:10}" for count in found))
    for tally in tallies:
        for escape in tally.escaped[:SHOWN]:
            print(f"  ESCAPED  {tally.name}: {escape}")
        for wrong in tally.refused_wrongly[:SHOWN]:
            print(f"  REFUSED WRONGLY  {tally.name}: {wrong}")


if __name__ == "__main__":
    sys.exit(main())
