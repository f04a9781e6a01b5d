"""The synchronous runtime has the whole surface of the asynchronous one."""

import asyncio
import inspect
import threading
from typing import Any

import pytest

from tests.world import World
from toolreeve import SyncToolreeve, ToolCall, Toolreeve, ToolreeveError

ASYNC_ONLY = {"sync", "internals"}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_method_has_a_synchronous_form_with_the_same_parameters() -> None:
    attributes = {"configuration", "tools", "principal", "origin", "session"}

    assert (public(Toolreeve) | attributes) - ASYNC_ONLY <= public(SyncToolreeve)
    for name in public(Toolreeve) - ASYNC_ONLY:
        asynchronous = getattr(Toolreeve, name)
        synchronous = getattr(SyncToolreeve, name)
        if callable(asynchronous):
            assert inspect.signature(synchronous) == inspect.signature(asynchronous), name


def test_the_constructor_takes_the_same_arguments_and_refuses_others() -> None:
    parameters = inspect.signature(Toolreeve.sync).parameters

    assert list(parameters) == list(inspect.signature(Toolreeve).parameters)
    with pytest.raises(TypeError, match="wrkspace"):
        Toolreeve.sync(wrkspace=".")  # type: ignore[call-arg]


def test_the_parts_are_reached_without_async(world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")

    with Toolreeve.sync(settings=world.settings()) as reeve:
        reeve.run(ToolCall(tool="read_file", args={"path": "a.txt"}, session="s"))
        recorded = reeve.wait(reeve.audit.recent(last_n=1, filters={}))
        explanation = reeve.explain("read_file", {"path": "a.txt"})

    assert (recorded[0]["tool"], explanation.verdict.decision.word) == ("read_file", "allow")
    with pytest.raises(ToolreeveError, match="not started"):
        reeve.call("read_file", path="a.txt")


def test_a_call_is_cancelled_from_another_thread(world: World) -> None:
    with Toolreeve.sync(settings=world.settings()) as reeve:
        call = ToolCall(tool="bash", args={"command": "cat < /dev/zero > /dev/null"})
        ended: list[str] = []
        thread = threading.Thread(target=lambda: ended.append(str(reeve.run(call).error)))
        thread.start()
        while thread.is_alive() and not reeve.cancel(call.id):
            thread.join(0.01)
        thread.join()

    assert len(ended) == 1


def test_the_sync_runtime_takes_the_same_road(world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")

    with Toolreeve.sync(settings=world.settings()) as reeve:
        read = reeve.call("read_file", path="a.txt")
        several = reeve.batch([{"tool": "calculate", "args": {"expression": f"{n}*2"}} for n in range(3)])
        chained = reeve.chain(
            [
                {"tool_name": "read_file", "params": {"path": "a.txt"}},
                {"tool_name": "calculate", "params": {"expression": "{{previous.size}} * 2"}},
            ]
        )

    assert read.output == "hello"
    assert [result.output for result in several] == [0, 2, 4]
    assert chained[-1].output == 10


async def test_the_sync_runtime_works_inside_a_running_loop_and_from_many_threads(world: World) -> None:
    with Toolreeve.sync(settings=world.settings()) as reeve:
        outputs: list[Any] = []

        def work(n: int) -> None:
            outputs.append(reeve.call("calculate", expression=f"{n}+1").output)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)

    assert sorted(outputs) == list(range(1, 11))


def test_calls_outside_with_say_how_to_start(world: World) -> None:
    reeve = Toolreeve.sync(settings=world.settings())

    with pytest.raises(ToolreeveError, match=r"with Toolreeve\.sync\(\)"):
        reeve.call("get_datetime")
