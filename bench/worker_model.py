"""Model of a fleet: what each part carries, and a simulation of the queueing.

`python -m bench.worker_model`. The model is arithmetic over measured costs; the simulation checks its waiting times and
its claim that one shared queue needs no balancing.
"""

import heapq
import random
import sys
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetModel:
    """`service` is the time that a call takes on a worker, in seconds; bytes are of one call."""

    gateways: int = 100
    workers: int = 1_000
    capacity: int = 16
    calls: float = 50_000.0
    service: float = 0.200
    call_bytes: int = 1_500
    result_bytes: int = 2_000
    record_bytes: int = 800
    stream_rate: float = 20_000.0
    """Messages a second that one replicated stream takes: its Raft leader is one thread."""
    sign_seconds: float = 60e-6
    verify_seconds: float = 190e-6
    chain_rate: float = 40_000.0
    """Records a second under the lock of one chain in PostgreSQL."""

    @property
    def utilisation(self) -> float:
        return self.calls * self.service / (self.workers * self.capacity)

    @property
    def streams(self) -> int:
        """Each call is stored once and acknowledged once."""
        return ceil(2 * self.calls / self.stream_rate)

    @property
    def chains(self) -> int:
        """Each call that changes something is two records."""
        return ceil(2 * self.calls / self.chain_rate)

    @property
    def nats_megabytes(self) -> float:
        """A second, with three copies of the queue and one of the reply."""
        return self.calls * (3 * self.call_bytes + self.result_bytes) / 1e6

    @property
    def gateway_cores(self) -> float:
        """For signing; the road itself is some 250 µs a call."""
        return self.calls * (self.sign_seconds + 250e-6)

    @property
    def record_terabytes_a_day(self) -> float:
        return 2 * self.calls * self.record_bytes * 86_400 / 1e12


def simulate(
    model: FleetModel, *, seconds: float, seed: int = 1, queues: int = 1, deaths: float = 0.0
) -> tuple[float, float, int]:
    """Poisson arrivals, exponential service. Returns the mean and the 99th percentile of the wait, and the calls lost
    to `deaths` of workers a second. With several queues each has its share of the places, and calls pick one by chance."""
    chance = random.Random(seed)
    places = model.workers * model.capacity // queues
    free = [[0.0] * places for _ in range(queues)]
    waits: list[float] = []
    lost = 0
    now = 0.0
    risk = deaths / model.workers
    while now < seconds:
        now += chance.expovariate(model.calls)
        queue = free[chance.randrange(queues)]
        begin = max(now, heapq.heappop(queue))
        service = chance.expovariate(1 / model.service)
        heapq.heappush(queue, begin + service)
        waits.append(begin - now)
        lost += risk > 0 and chance.random() < risk * service
    waits.sort()
    return sum(waits) / len(waits), waits[int(len(waits) * 0.99)], lost


def describe(model: FleetModel) -> list[str]:
    return [
        f"utilisation {model.utilisation:.1%} of {model.workers * model.capacity:,} places",
        f"{model.streams} streams (hash of the call), {model.chains} chains",
        f"{model.nats_megabytes:,.0f} MB/s through NATS, {model.record_terabytes_a_day:.1f} TB of records a day",
        f"{model.gateway_cores:.1f} cores of gateways, {model.calls * model.verify_seconds:.1f} cores of workers to verify",
    ]


def main() -> int:
    model = FleetModel()
    print("\n".join(describe(model)))
    for queues in (1, 5, 1_000):
        mean, p99, _ = simulate(model, seconds=4.0, queues=queues)
        print(f"{queues} queues: wait {mean * 1e3:.3f} ms mean, {p99 * 1e3:.1f} ms p99")
    return 0


if __name__ == "__main__":
    sys.exit(main())
