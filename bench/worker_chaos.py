"""Chaos: kills and pauses of gateways, workers, NATS and PostgreSQL under self-counting calls.

`python -m bench.worker_chaos [KILLS] [SEED]`. No call that must not run twice may run twice, and what a caller was told
to have succeeded must have happened and be in the record, once; no call stays open there.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from tests.execution.workers.fleet import Fleet
from tests.execution.workers.nats_server import NatsCluster
from tests.record.postgres.server import PostgresServer

from toolreeve.config.sections.state import State
from toolreeve.core.errors import ErrorCode

CALLERS = 64
WORKERS = 3
GATEWAYS = 2
REPLIES = {ErrorCode.WORKER_LOST: "lost", ErrorCode.WORKER_UNAVAILABLE: "unavailable"}


@dataclass(frozen=True, slots=True)
class Findings:
    """What came of the calls. `doubled` ran twice, `vanished` was acknowledged and did not happen, `unrecorded` was
    acknowledged and is not in the record, or is there twice; `unended` has an intent there and no outcome."""

    kills: dict[str, int]
    called: int
    acknowledged: int
    lost: int
    unavailable: int
    doubled: tuple[int, ...]
    vanished: tuple[int, ...]
    unrecorded: tuple[int, ...]
    unended: tuple[str, ...]
    verified: bool

    @property
    def is_clean(self) -> bool:
        return self.verified and not (self.doubled or self.vanished or self.unrecorded or self.unended)


class ChaosFleet(Fleet):
    """A cluster of three NATS servers, PostgreSQL, two gateways and three workers, each a process."""

    def __init__(self, place: Path, *, callers: int) -> None:
        self.cluster = NatsCluster(place / "nats").start()
        self.database = PostgresServer()
        self.state_url = self.database.new_database()
        super().__init__(place, self.cluster.url, replicas=3)
        self.callers = callers
        self.gateways: list[subprocess.Popen[bytes]] = []
        self.kills: Counter[str] = Counter()

    def start_gateway(self) -> subprocess.Popen[bytes]:
        number = len(self.gateways)
        told = {
            "place": str(self.place),
            "url": self.url,
            "state_url": self.state_url,
            "key": self.gateway_key,
            "number": number,
        }
        command = [
            sys.executable,
            "-m",
            "bench.worker_chaos",
            "--gateway",
            json.dumps({**told, "callers": self.callers}),
        ]
        with (self.place / f"gateway{number}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.gateways.append(process)
        return process

    def told(self, word: str) -> list[int]:
        """The calls of which the callers were told this."""
        paths = self.place.glob("told*.log")
        lines = [line.split() for path in paths for line in path.read_text().splitlines()]
        return [int(number) for said, number in lines if said == word]

    def stop_all(self) -> None:
        for process in self.gateways:
            if process.poll() is None:
                process.terminate()
        for process in self.gateways:
            process.wait(90)
        self.stop()

    def strike(self, chance: random.Random) -> None:
        """Kill something, and start it or its successor. What found no NATS when it started has ended by itself."""
        while sum(each.poll() is None for each in self.processes) < WORKERS:
            self.start_worker("--capacity", "32")
        while sum(each.poll() is None for each in self.gateways) < GATEWAYS:
            self.start_gateway()
        match chance.choices(("worker", "gateway", "nats", "database", "pause"), (5, 2, 3, 1, 1))[0]:
            case "worker":
                self._kill("worker", self.processes, chance)
                self.start_worker("--capacity", "32")
            case "gateway":
                self._kill("gateway", self.gateways, chance)
                self.start_gateway()
            case "database":
                self.database.stop("immediate")
                self.kills["database"] += 1
                time.sleep(chance.random())
                self.database.start()
            case "pause":
                self._pause(chance)
            case _:
                server = chance.choice(self.cluster.servers)
                server.kill()
                self.kills["nats"] += 1
                time.sleep(chance.random())
                server.start()

    def _pause(self, chance: random.Random) -> None:
        """Longer than `ack_wait`: what is given up as lost wakes up again and goes on."""
        workers = [each for each in (*self.processes, *self.gateways) if each.poll() is None]
        servers = [each.process for each in self.cluster.servers if each.process is not None]
        victim = chance.choice([*workers, *servers])
        victim.send_signal(signal.SIGSTOP)
        time.sleep(5)
        victim.send_signal(signal.SIGCONT)
        self.kills["pause"] += 1

    def _kill(self, kind: str, processes: list[subprocess.Popen[bytes]], chance: random.Random) -> None:
        victim = chance.choice([each for each in processes if each.poll() is None])
        victim.send_signal(signal.SIGKILL)
        victim.wait(10)
        self.kills[kind] += 1

    def findings(self) -> Findings:
        effects = Counter(self.effects("once.log"))
        ended = set(self.effects("ended.log"))
        acknowledged = self.told("ok")
        recorded, unended, verified = self._read_record()
        return Findings(
            kills=dict(self.kills),
            called=len(self.told("begin")),
            acknowledged=len(acknowledged),
            lost=len(self.told("lost")),
            unavailable=len(self.told("unavailable")),
            doubled=tuple(number for number, times in effects.items() if times > 1),
            vanished=tuple(number for number in acknowledged if number not in ended),
            unrecorded=tuple(number for number in acknowledged if recorded[number] != 1),
            unended=tuple(unended),
            verified=verified,
        )

    def _read_record(self) -> tuple[Counter[int], set[str], bool]:
        """The numbers of recorded successes, the calls without an outcome, and whether the chain verifies."""
        environment = os.environ | {
            "HOME": str(self.place),
            "TOOLREEVE_STATE_DIR": str(self.place / "state"),
            "TOOLREEVE_STATE_URL": self.state_url,
        }

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "toolreeve", *words, "--workspace", str(self.workspace)]
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

        with psycopg.connect(
            self.state_url
        ) as connection:  # as time would: the next process ends the calls of the dead
            connection.execute("UPDATE toolreeve.processes SET lease = now() - interval '1 s'")
        assert run("call", "calculate", "expression=6*7").returncode == 0
        lines = [json.loads(line) for line in run("audit", "export", "--format", "jsonl").stdout.splitlines()]
        ended = {line["call_id"] for line in lines if line["kind"] in ("call", "lost")}
        unended = {line["call_id"] for line in lines if line["kind"] == "intent"} - ended
        done = Counter(line["args"]["number"] for line in lines if line.get("tool") == "once" and line.get("success"))
        return done, unended, run("audit", "verify").returncode == 0


def run_chaos(place: Path, *, kills: int, seed: int, callers: int = CALLERS, pause: float = 1.0) -> Findings:
    chance = random.Random(seed)
    fleet = ChaosFleet(place, callers=callers)
    try:
        for _ in range(WORKERS):
            fleet.start_worker("--capacity", "32")
        for _ in range(GATEWAYS):
            fleet.start_gateway()
        fleet.wait_for(lambda: len(fleet.told("ok")) > 20, seconds=90)
        for _ in range(kills):
            time.sleep(pause * (0.5 + chance.random()))
            fleet.strike(chance)
        before = len(fleet.told("ok"))
        fleet.wait_for(lambda: len(fleet.told("ok")) > before + 20, seconds=90)
        fleet.stop_all()
        return fleet.findings()
    finally:
        for process in (*fleet.gateways, *fleet.processes):
            if process.poll() is None:
                process.kill()
                process.wait(10)
        fleet.cluster.stop()
        fleet.database.close()


async def serve_gateway(told: dict[str, Any]) -> None:
    """Callers that call until they are stopped, and write down what they are told."""
    fleet = Fleet.__new__(Fleet)
    fleet.attach(Path(told["place"]), told["url"], told["key"], replicas=3)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    log = os.open(fleet.place / f"told{told['number']}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    numbers = iter(range(told["number"] * 1_000_000, (told["number"] + 1) * 1_000_000))

    fleet.state = State(dir=str(fleet.place / f"state{told['number']}"), url=told["state_url"])
    async with fleet.gateway() as reeve:

        async def call_on() -> None:
            while not stop.is_set():
                number = next(numbers)
                os.write(log, f"begin {number}\n".encode())
                result = await reeve.call("once", number=number, seconds=random.random() * 0.2)
                error = result.error
                said = "ok" if error is None else REPLIES.get(error.code, "other")
                os.write(log, f"{said} {number}\n".encode())
                if error is not None:
                    print(number, error.code, error.message, flush=True)

        await asyncio.gather(*(call_on() for _ in range(told["callers"] // 2)))


def main(words: list[str]) -> int:
    if words[:1] == ["--gateway"]:
        asyncio.run(serve_gateway(json.loads(words[1])))
        return 0
    kills = int(words[0]) if words else 200
    seed = int(words[1]) if len(words) > 1 else random.randrange(10**6)
    place = Path(tempfile.mkdtemp(prefix="chaos-"))
    found = run_chaos(place, kills=kills, seed=seed)
    print(json.dumps({"seed": seed, "place": str(place), **asdict(found), "clean": found.is_clean}, indent=1))
    return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
