"""`toolreeve demo`: a scripted agent in a scratch folder, in the console.

No key and no network: the model is a script, the web is this machine. Everything else is real: the agent and its
tools, the policy, the sandbox, the record and the console.
"""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand
from toolreeve.cli.output import note, print_text

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from toolreeve.agent.events import AgentEvent
    from toolreeve.approval.channels.inbox import InboxChannel
    from toolreeve.cli.demo.story import Task
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.app import HttpServer

LOOK_SECONDS = 0.2
ANSWER_SECONDS = 900.0
BROWSER_SECONDS = 30.0
SHOWN = 90


@click.command(cls=CliCommand)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port of the console; 0 picks a free one.")
@click.option(
    "--exit", "ends", is_flag=True, help="End when the agent is done; without a browser, it works after 30 s."
)
def demo(*, port: int, ends: bool) -> int:
    """Watch a scripted agent work, be asked, be refused and be undone. It needs no key and no network."""
    from toolreeve.serve.app import bind
    from toolreeve.serve.mcp.stdio import run

    folder = Path(tempfile.mkdtemp(prefix="toolreeve-demo-"))
    try:
        with bind("127.0.0.1", port) as place:
            run(_demo(folder, place, ends=ends))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _demo(folder: Path, place: "socket.socket", *, ends: bool) -> None:
    from toolreeve.approval.channels.inbox import InboxChannel
    from toolreeve.cli.demo.story import new_tasks, web_site, write_shop
    from toolreeve.cli.local_setup import new_local_setup
    from toolreeve.cli.options import Options
    from toolreeve.config.sections.serve import Serve
    from toolreeve.serve.access import new_access_control
    from toolreeve.serve.app import HttpServer
    from toolreeve.serve.doors import new_application
    from toolreeve.serve.limits import read_limits
    from toolreeve.serve.login import new_link
    from toolreeve.serve.mcp.door import new_view
    from toolreeve.serve.mcp.http import ToolViews
    from toolreeve.serve.tokens import Tokens

    write_shop(folder / "shop")
    host, port = place.getsockname()[:2]
    inbox = InboxChannel()
    limits = read_limits(Serve())
    with web_site() as (page, collect, leaked):
        reeve = _new_runtime(folder, inbox, site=page.split("/")[2])
        views = ToolViews(new_view(reeve, search=False))
        access = new_access_control(host, Tokens())
        setup = new_local_setup(Options(loaded=reeve.configuration), is_demo=True)
        async with reeve, new_application(reeve, access, views, limits, inbox=inbox, setup=setup) as application:
            link = await new_link(reeve.internals.store.credentials, time.time(), f"http://{host}:{port}")
            note(f"a shop to work in: {folder / 'shop'}")
            note(f"open the console, for one login:\n{link}")
            server = HttpServer(application, limits)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.serve([place]))
                tasks.create_task(_tell(reeve, inbox, new_tasks(page, collect), leaked, server, ends=ends))


def _new_runtime(folder: Path, inbox: "InboxChannel", *, site: str) -> "Toolreeve":
    from toolreeve.cli.demo.story import POLICY
    from toolreeve.config import Settings, State, Workspace
    from toolreeve.config.sections.approval import Approval
    from toolreeve.config.sections.network import Network
    from toolreeve.config.sections.policy import Policy
    from toolreeve.runtime.toolreeve import Toolreeve

    rules = folder / "policy.yaml"
    rules.write_text(POLICY)
    settings = Settings(
        workspace=Workspace(dir=str(folder / "shop")),
        state=State(dir=str(folder / "state")),
        policy=Policy(files=(str(rules),)),
        network=Network(allow=(site,)),
        approval=Approval(timeout=ANSWER_SECONDS),
    )
    return Toolreeve(settings=settings, approve=[inbox], mcp_servers={}, origin="agent")


async def _tell(
    reeve: "Toolreeve",
    inbox: "InboxChannel",
    tasks: "Sequence[Task]",
    leaked: list[bytes],
    server: "HttpServer",
    *,
    ends: bool,
) -> None:
    """Wait until the console is open, then let the agent work, and undo what the page made it do."""
    waits_until = time.monotonic() + BROWSER_SECONDS
    while not inbox.available():
        if server.should_exit:
            return
        if ends and time.monotonic() > waits_until:
            note("no browser: the agent works without you, and what you would be asked about is refused")
            break
        await asyncio.sleep(LOOK_SECONDS)
    for task in tasks:
        print_text(f"the user: {task.words}")
        await _work(reeve, task)
    undone = await reeve.undo(last=True)
    what = "undone: the last change to the notes" if undone.success else f"not undone: {undone.to_text()[:SHOWN]}"
    print_text(what)
    print_text("you allowed it: the page has your customers" if leaked else "nothing was leaked")
    note("the agent is done" + ("" if ends else "; look at Calls, Audit and Policy (^C ends the demo)"))
    if ends:
        server.should_exit = True


async def _work(reeve: "Toolreeve", task: "Task") -> None:
    from toolreeve.agent.config import BaseAgentConfig
    from toolreeve.agent.providers import connect
    from toolreeve.agent.recorded_run import run_recorded
    from toolreeve.testing import ScriptedModel

    with ScriptedModel(task.turns) as model:
        base_url = model.base_url("openai")
        config = BaseAgentConfig(llm_provider="openai", model="scripted", base_url=base_url, api_key="none")
        provider = connect("openai", base_url=base_url, api_key="none", timeout=60, environ={})
        result = await run_recorded(reeve, config, {"task": task.words}, provider=provider, emit=_show)
    outcome = result.outcome
    print_text(f"the agent: {outcome.text}" if outcome.text else f"the run was stopped: {outcome.why.splitlines()[0]}")


def _show(event: "AgentEvent") -> None:
    from toolreeve.agent.events import EventKind

    if event.kind is EventKind.TOOL_ENDED:
        print_text(f"  {event.data['tool']}: {event.data.get('error') or 'done'}")
