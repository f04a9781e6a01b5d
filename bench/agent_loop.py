"""The agent's loop: CPU time of a step beyond the model's client, beside other frameworks.

Each turn calls one small tool, with 30 tools declared. The model is scripted, in a process of its own; the baseline
sends the same number of requests with the plain client.
"""

import asyncio
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import psutil

from bench.measure import Row
from toolreeve import BaseAgent, BaseAgentConfig, Toolreeve, tool
from toolreeve.core.tool import FunctionTool
from toolreeve.testing import ScriptedModel, call, say

STEPS = 40
LONG = 200
ROUNDS = 5
TOOLS = 30
PROMISED_MS = 2.0
Loop = Callable[[str, int, Callable[[], None]], Awaitable[object]]


def _serve(pipe: Connection, steps: int) -> None:
    turns = [call("tool_0", text=str(number)) for number in range(steps)]
    with ScriptedModel([*turns, say("done")]) as model:
        pipe.send(model.base_url("openai"))
        pipe.recv()


@contextmanager
def _model(steps: int) -> Any:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, steps))
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()


def _tool(number: int) -> FunctionTool[..., Any]:
    @tool(name=f"tool_{number}", danger="safe", description=f"Number {number}: gives the text back.", inline=True)
    def echo(text: str, times: int = 1) -> str:
        return text * times

    return echo


async def agent_loops() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        reeve = Toolreeve(tools=[_tool(number) for number in range(TOOLS)], builtin=False, workspace=folder)
        async with reeve:
            loops: dict[str, Loop] = {
                "plain client": _client_loop(reeve),
                "Pydantic AI": _pydantic_loop(reeve),
                "OpenAI Agents": _agents_loop(reeve),
                "LangChain": _langchain_loop(reeve),
            }
            times = await _measure({"Toolreeve": _own_loop(folder), **loops})
        growth = await _memory(_own_loop(folder))
    plain = times.pop("plain client")
    rows = [_row(name, seconds - plain) for name, seconds in times.items()]
    return [*rows, Row(name=f"agent: memory, {LONG} steps", value=f"{growth:.1f} MB more than after the first run")]


def _row(name: str, seconds: float) -> Row:
    milliseconds = seconds * 1000 / STEPS
    if name != "Toolreeve":
        return Row(name=f"agent: CPU per step, {name}", value=f"{milliseconds:.2f} ms")
    promise = f"≤ {PROMISED_MS:g} ms"
    met = milliseconds <= PROMISED_MS
    return Row(name="agent: CPU per step, Toolreeve", value=f"{milliseconds:.2f} ms", target=promise, met=met)


async def _measure(loops: dict[str, Loop]) -> dict[str, float]:
    """CPU seconds of each, the median of alternating rounds; the first round warms up."""
    taken: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(ROUNDS + 1):
        for name, run in loops.items():
            with _model(STEPS) as url:
                taken[name].append(await _time(run, url))
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


async def _time(run: Loop, url: str) -> float:
    """From the first event to the end, so that starting the runtime does not count."""
    began = time.process_time()

    def start() -> None:
        nonlocal began
        began = time.process_time()

    await run(url, STEPS, start)
    return time.process_time() - began


async def _memory(run: Loop) -> float:
    process = psutil.Process()
    with _model(LONG) as url:
        await run(url, LONG, lambda: None)
    before = process.memory_info().rss
    for _ in range(3):
        with _model(LONG) as url:
            await run(url, LONG, lambda: None)
    return (process.memory_info().rss - before) / 1e6


def _own_loop(folder: str) -> Loop:
    tools = [_tool(number) for number in range(TOOLS)]

    async def run(url: str, steps: int, start: Callable[[], None]) -> object:
        config = BaseAgentConfig(model="m", base_url=url, api_key="k", max_steps=steps + 1)
        async with BaseAgent(config, tools=tools, builtin=False, workspace=folder) as agent:
            agent.declared_tools()
            start()
            result = await agent.run_async(task="go")
        if not result.completed or len(result.tools_used) != steps:
            raise RuntimeError(f"the run ended early: {result.outcome.why}")
        return result

    return run


def _client_loop(reeve: Toolreeve) -> Loop:
    async def run(url: str, steps: int, start: Callable[[], None]) -> object:
        start()
        from openai import AsyncOpenAI

        messages: list[Any] = [{"role": "user", "content": "go"}]
        declared = reeve.tools_for("openai")
        async with AsyncOpenAI(base_url=url, api_key="k") as client:
            for _ in range(steps + 1):
                body = {"messages": messages, "tools": declared, "stream_options": {"include_usage": True}}
                stream = await client.chat.completions.create(model="m", messages=[], stream=True, extra_body=body)
                async for _ in stream:
                    pass
        return messages

    return run


def _pydantic_loop(reeve: Toolreeve) -> Loop:
    async def run(url: str, steps: int, start: Callable[[], None]) -> object:
        start()
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
        from pydantic_ai.usage import UsageLimits

        from toolreeve.adapters.pydantic_ai import ReeveToolset

        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="k"))
        agent = Agent(model, toolsets=[ReeveToolset[None](reeve)])
        async with agent.run_stream("go", usage_limits=UsageLimits(request_limit=steps + 1)) as stream:
            return await stream.get_output()

    return run


def _agents_loop(reeve: Toolreeve) -> Loop:
    async def run(url: str, steps: int, start: Callable[[], None]) -> object:
        start()
        from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
        from openai import AsyncOpenAI

        from toolreeve.adapters.openai_agents import function_tools

        set_tracing_disabled(disabled=True)
        client = AsyncOpenAI(base_url=url, api_key="k")
        model = OpenAIChatCompletionsModel("m", openai_client=client)
        agent = Agent(name="a", model=model, tools=list(function_tools(reeve)))
        result = Runner.run_streamed(agent, "go", max_turns=steps + 1)
        async for _ in result.stream_events():
            pass
        return result.final_output

    return run


def _langchain_loop(reeve: Toolreeve) -> Loop:
    async def run(url: str, steps: int, start: Callable[[], None]) -> object:
        start()
        from langchain.agents import create_agent
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr

        from toolreeve.adapters.langchain import langchain_tools

        model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("k"), streaming=True)
        agent = create_agent(model, tools=langchain_tools(reeve))
        asked: Any = {"messages": [{"role": "user", "content": "go"}]}
        result = await agent.ainvoke(asked, config={"recursion_limit": 4 * steps + 10})
        return result["messages"][-1].content

    return run


if __name__ == "__main__":
    for each in asyncio.run(agent_loops()):
        print(each.name, each.value, each.target, file=sys.stdout)
