"""Session grants in two real processes: shared, revoked and expired at the same moment for both."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.approval.granted_process import GrantedProcess, granted_process
from tests.world import World
from toolreeve.record.sql.grants import SqlGrants
from toolreeve.record.store import Store

INTERLEAVINGS = 200
CLIENTS = ("red", "blue")


@asynccontextmanager
async def opened(world: World) -> AsyncIterator[tuple[list[GrantedProcess], SqlGrants]]:
    """Two processes, and the grants as a third one sees them."""
    async with (
        granted_process(world.workspace, world.state) as one,
        granted_process(world.workspace, world.state) as two,
    ):
        store = Store(world.state / "toolreeve.db")
        await store.start()
        try:
            yield [one, two], store.grants(time.time)
        finally:
            await store.close()


async def test_a_session_that_we_named_is_granted_and_revoked_for_both(world: World) -> None:
    async with opened(world) as ((one, two), grants):
        assert await one.call("s", grant={})
        assert await two.call("s")
        assert not await two.call("s", client="other")

        assert await grants.revoke_all(by="Ann") == 1
        assert [await one.call("s"), await two.call("s")] == [False, False]


async def test_two_programs_in_the_session_called_default_share_nothing(world: World) -> None:
    async with opened(world) as ((one, two), grants):
        assert await one.call("default", issued=False, grant={})
        assert await one.call("default", issued=False)
        assert not await two.call("default", issued=False)
        assert not await two.call("default", issued=True)

        (grant,) = await grants.list()
        assert await grants.revoke(grant.id, by="Ann")
        assert not await one.call("default", issued=False)


async def test_a_grant_of_a_program_ends_with_it(world: World) -> None:
    async with granted_process(world.workspace, world.state) as one:
        assert await one.call("default", issued=False, grant={})
    async with opened(world) as ((one, _), grants):
        assert await grants.list() == []
        assert not await one.call("default", issued=False)


class Model:
    """What may hold for each client: a yes counts from when it is sent, a revocation from when it is acknowledged."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.ends = dict.fromkeys(CLIENTS, 0.0)
        self.given = Counter[str]()
        self.granting = Counter[str]()

    async def grant(self, process: GrantedProcess, client: str, seconds: float | None) -> None:
        expires = None if seconds is None else time.time() + seconds
        self.ends[client] = max(self.ends[client], expires or float("inf"))
        self.granting[client] += 1
        self.given[client] += 1
        await process.call(self.session, client=client, grant={"expires": expires})
        self.granting[client] -= 1

    async def revoke(self, grants: SqlGrants) -> None:
        before = {client: self.given[client] for client in CLIENTS if not self.granting[client]}
        await grants.revoke_all(by="Ann", session=self.session)
        for client, given in before.items():
            if given == self.given[client]:
                self.ends[client] = 0.0

    async def call(self, process: GrantedProcess, client: str) -> None:
        may_run = False
        given = 0

        def sent() -> None:
            nonlocal may_run, given
            may_run = self.ends[client] > time.time() or self.granting[client] > 0
            given = self.given[client]

        ran = await process.call(self.session, client=client, on_send=sent)
        assert not ran or may_run or given != self.given[client], (self.session, client)


async def test_no_interleaving_runs_a_call_after_its_revocation_or_for_another_client(world: World) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    async with opened(world) as (processes, grants):
        for number in range(INTERLEAVINGS):
            model = Model(f"s{number}")
            for _ in range(chance.randint(2, 4)):
                steps = []
                for _ in range(chance.randint(1, 3)):
                    process, client = chance.choice(processes), chance.choice(CLIENTS)
                    match chance.choice(("grant", "revoke", "expire", "call", "call", "call")):
                        case "grant":
                            steps.append(model.grant(process, client, None))
                        case "expire":
                            steps.append(model.grant(process, client, chance.uniform(0.001, 0.02)))
                        case "revoke":
                            steps.append(model.revoke(grants))
                        case _:
                            steps.append(model.call(process, client))
                await asyncio.gather(*steps)
            await model.revoke(grants)
            assert not any(
                [await process.call(model.session, client=client) for process in processes for client in CLIENTS]
            )
            await model.grant(processes[0], "red", None)
            assert await processes[1].call(model.session, client="red")
            assert not await processes[1].call(model.session, client="blue")
