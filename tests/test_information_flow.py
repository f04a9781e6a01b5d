"""Information flow on the real road."""

from tests.world import World
from toolreeve.config.xdg import DATABASE
from toolreeve.record.store import Store


async def test_what_the_user_says_is_kept_for_the_session_without_secrets(world: World) -> None:
    async with world.reeve() as reeve:
        await reeve.say("Mail bob@x.org the token ghp_abcdefghijklmnopqrstuvwxyz0123456789")
        session = reeve.session
    store = Store(world.state / DATABASE)
    await store.start()
    try:
        (said,) = await store.flow_facts(lambda: 0.0).find(user="local", session=session)
    finally:
        await store.close()

    assert said.value == "Mail bob@x.org the token [redacted]"
