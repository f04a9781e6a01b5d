"""A small agent on the A2A SDK, with its own task store in memory. Run as `python -m tests.upstream.a2a_hello PORT`."""

import asyncio
import socket
import sys

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState
from starlette.applications import Starlette
from uvicorn import Config, Server


class HelloExecutor(AgentExecutor):
    """Says it again; asks first if it is told to wipe something."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None and context.message is not None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        said = context.get_user_input()
        asked = task is not None and task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        if said.startswith("wipe") and not asked:
            await updater.requires_input(updater.new_agent_message([Part(text="Really?")]))
        elif asked and said != "yes":
            await updater.failed(updater.new_agent_message([Part(text="declined")]))
        else:
            await updater.start_work()
            await updater.add_artifact([Part(text=f"hello: {said}")], name="greeting")
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def new_app(url: str, *, description: str = "Says it again.", endpoint: str = "") -> Starlette:
    place = AgentInterface(url=endpoint or f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
    card = AgentCard(
        name="Hello",
        description="An agent for tests.",
        version="1",
        supported_interfaces=[place],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="greet", name="Greet", description=description, tags=["hello"], examples=["hi"])],
    )
    handler = DefaultRequestHandler(HelloExecutor(), InMemoryTaskStore(), card)
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])


def new_server(place: socket.socket, **options: str) -> Server:
    url = f"http://127.0.0.1:{place.getsockname()[1]}"
    return Server(Config(new_app(url, **options), log_level="warning", access_log=False))


async def main(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as place:
        await new_server(place).serve([place])


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
