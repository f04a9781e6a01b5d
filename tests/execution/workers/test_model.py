"""The model of a large fleet, as the design decision states it."""

from dataclasses import replace

import pytest
from bench.worker_model import FleetModel, simulate


def test_the_model_says_what_the_decision_says() -> None:
    model = FleetModel()

    assert (model.places, model.pools, model.chains) == (16_000, 20, 3)
    assert model.utilisation == pytest.approx(0.625)


@pytest.mark.parametrize("service", [0.3, 0.31])
def test_the_simulation_agrees_with_the_model(service: float) -> None:
    pool = replace(FleetModel(), service=service).one_pool()

    mean, _ = simulate(pool, calls=300_000)

    assert mean == pytest.approx(pool.mean_wait(), rel=0.5, abs=0.0005)
