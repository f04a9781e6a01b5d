"""Model of a fleet: what each part carries, checked by a simulation of the queueing.

`python -m bench.worker_model`. Costs are those that were measured; see docs/design/0038-workers.md.
"""

import heapq
import random
import sys
from dataclasses import dataclass, replace
from math import ceil, exp, lgamma, log


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetModel:
    """Times are in seconds, sizes in bytes of one call, rates in calls or records a second."""

    gateways: int = 100
    workers: int = 1_000
    capacity: int = 16
    calls: float = 50_000.0
    service: float = 0.2
    call_bytes: int = 1_500
    result_bytes: int = 2_000
    record_bytes: int = 800
    stream_calls: float = 2_500.0
    """What one stream with three copies carried, with everything on two shared cores."""
    chain_records: float = 40_000.0
    """What one chain in PostgreSQL takes under its lock."""
    road_seconds: float = 250e-6
    sign_seconds: float = 60e-6
    verify_seconds: float = 190e-6

    @property
    def places(self) -> int:
        return self.workers * self.capacity

    @property
    def utilisation(self) -> float:
        return self.calls * self.service / self.places

    @property
    def pools(self) -> int:
        """A pool has its own streams."""
        return ceil(self.calls / self.stream_calls)

    @property
    def chains(self) -> int:
        """A call that changes something is two records."""
        return ceil(2 * self.calls / self.chain_records)

    def one_pool(self) -> "FleetModel":
        return replace(self, workers=self.workers // self.pools, calls=self.calls / self.pools)

    def mean_wait(self) -> float:
        """Erlang C: the mean wait in a queue with this many places."""
        offered = self.calls * self.service
        log_terms = [number * log(offered) - lgamma(number + 1) for number in range(self.places)]
        last = self.places * log(offered) - lgamma(self.places + 1) - log(1 - self.utilisation)
        top = max(*log_terms, last)
        waits = exp(last - top) / (sum(exp(each - top) for each in log_terms) + exp(last - top))
        return waits * self.service / (self.places * (1 - self.utilisation))

    def describe(self) -> list[str]:
        megabytes = self.calls * (3 * self.call_bytes + self.result_bytes) / 1e6
        terabytes = 2 * self.calls * self.record_bytes * 86_400 / 1e12
        signing = self.calls * (self.sign_seconds + self.road_seconds)
        return [
            f"{self.places:,} places, {self.utilisation:.1%} of them busy",
            f"{self.pools} pools, {self.chains} chains",
            f"{megabytes:,.0f} MB/s through NATS, {terabytes:.1f} TB of records a day",
            f"{signing:.1f} cores of gateways, {self.calls * self.verify_seconds:.1f} cores of workers to verify",
        ]


def simulate(model: FleetModel, *, calls: int, seed: int = 1) -> tuple[float, float]:
    """Poisson arrivals, exponential service, one queue: the mean and the 99th percentile of the wait. The first half
    only fills the queue."""
    chance = random.Random(seed)
    free = [0.0] * model.places
    waits: list[float] = []
    now = 0.0
    for _ in range(calls):
        now += chance.expovariate(model.calls)
        begin = max(now, heapq.heappop(free))
        heapq.heappush(free, begin + chance.expovariate(1 / model.service))
        waits.append(begin - now)
    settled = sorted(waits[calls // 2 :])
    return sum(settled) / len(settled), settled[int(len(settled) * 0.99)]


def main() -> int:
    model = FleetModel()
    print("\n".join(model.describe()))
    for service in (0.2, 0.3, 0.31):
        pool = replace(model, service=service).one_pool()
        mean, p99 = simulate(pool, calls=600_000)
        print(
            f"a pool of {pool.places} places, calls of {service} s, {pool.utilisation:.1%} busy: wait"
            f" {pool.mean_wait() * 1e3:.2f} ms by the model, {mean * 1e3:.2f} ms simulated, p99 {p99 * 1e3:.1f} ms"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
