"""Is a secret written down? Every known shape, made up anew, must be found; ordinary output must pass untouched."""

import random
from pathlib import Path

from tests.core.secrets.ordinary_output import lines
from tests.core.secrets.secret_samples import samples

from bench.attacks.outcome import Tally
from toolreeve.core.secrets.redactor import Redactor

SEEDS = 5
TOLERATED = 0.001


async def run(_corpora: Path | None) -> list[Tally]:
    return [_shapes(), _ordinary()]


def _shapes() -> Tally:
    tally, redactor = Tally(name="shapes of secrets"), Redactor()
    for seed in range(SEEDS):
        for sample in samples(random.Random(seed)):
            tally.payloads += seed == 0
            tally.attempts += 1
            if sample.is_found(redactor):
                tally.refused += 1
            else:
                tally.escaped.append(sample.name)
    return tally


def _ordinary() -> Tally:
    """A few lines of a hundred thousand are taken for secrets; more than one in a thousand are too many."""
    tally, redactor = Tally(name="ordinary lines"), Redactor()
    ordinary = list(lines())
    changed = [line for line in ordinary if redactor.text(line) != line]
    tally.payloads = tally.attempts = len(ordinary)
    tally.refused, tally.harmless = len(changed), len(ordinary) - len(changed)
    if len(changed) > TOLERATED * len(ordinary):
        tally.wronged += changed
    return tally
