"""Compares MCP through Toolreeve with the SDK and FastMCP alone.

Servers are started together and called in turns, so that a slow moment of the machine hits all of them alike.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from bench.measure import Row, micros
from bench.protocol.load import MODERN_META, OverHttp, OverStdio, Spent, Target, environment, free_port, measure
from bench.protocol.peers import fastmcp_python

T = TypeVar("T", bound=Target)
HERE = Path(__file__).parent
TOOLREEVE = str(Path(sys.executable).with_name("toolreeve"))
ROUNDS = 7
CALLS = 600
STARTS = 9


async def protocol() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench = _Bench(Path(folder), stack)
        return [*bench.stdio(), *bench.http(), *bench.gateway(), *bench.many_tools(), *bench.start()]


class _Bench:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._count = 0

    def stdio(self) -> list[Row]:
        targets = {
            "ours": self._ours(),
            "sdk": self._close_later(OverStdio([sys.executable, str(HERE / "lowlevel.py"), "stdio"]).initialize()),
            "fastmcp": self._close_later(OverStdio([fastmcp_python(), str(HERE / "fast.py"), "stdio"]).initialize()),
        }
        return self._faster("stdio", targets)

    def http(self) -> list[Row]:
        ours, sdk, fast = free_port(), free_port(), free_port()
        serve = [TOOLREEVE, "serve", "--mcp", "--port", str(ours), "--workspace", str(self._workspace())]
        targets = {
            "ours": self._close_later(OverHttp(serve, ours, env=self._environment(tools=True))),
            "sdk": self._close_later(OverHttp([sys.executable, str(HERE / "lowlevel.py"), str(sdk)], sdk)),
            "fastmcp": self._close_later(OverHttp([fastmcp_python(), str(HERE / "fast.py"), str(fast)], fast)),
        }
        return self._faster("HTTP 2026", targets)

    def gateway(self) -> list[Row]:
        upstream = [sys.executable, str(HERE / "lowlevel.py"), "stdio"]
        targets = {
            "ours": self._gateway(upstream),
            "durable": self._gateway(upstream, danger="high"),
            "sdk": self._close_later(OverStdio([sys.executable, str(HERE / "sdk_gateway.py"), *upstream]).initialize()),
            "fastmcp": self._close_later(
                OverStdio([fastmcp_python(), str(HERE / "fast.py"), "proxy", *upstream]).initialize()
            ),
        }
        spent = _in_turns(targets, together=8)
        ours = spent["ours"].cpu
        durable = spent["durable"].cpu
        rows = [
            Row(
                name=f"gateway hop to a stdio upstream, CPU against {against}",
                value=f"{micros(ours)} against {micros(spent[name].cpu)}",
                ratio=ours / spent[name].cpu,
                p50=ours,
                target=f"≤ {most:g}×",
                met=ours <= most * spent[name].cpu,
            )
            for name, against, most in (("sdk", "SDK server + SDK client", 0.5), ("fastmcp", "a FastMCP proxy", 0.1))
        ]
        name = "the same for a tool that may change something, recorded durably before and after"
        return [*rows, Row(name=name, value=micros(durable), ratio=durable / spent["sdk"].cpu, p50=durable)]

    def many_tools(self) -> list[Row]:
        few, many = (
            self._gateway([sys.executable, str(HERE / "lowlevel.py"), "stdio", str(count)]) for count in (10, 1000)
        )
        spent = _in_turns({"few": few, "many": many}, together=8)
        listing = [_listing(each) for each in (few, many)]
        return [
            Row(
                name="a call with 1,000 upstream tools, CPU against 10",
                value=f"{micros(spent['many'].cpu)} against {micros(spent['few'].cpu)}",
                ratio=spent["many"].cpu / spent["few"].cpu,
                target="≤ 1.1×",
                met=spent["many"].cpu <= 1.1 * spent["few"].cpu,
            ),
            Row(name="tools/list with 1,000 upstream tools", value=f"{listing[1] * 1000:.1f} ms", p50=listing[1]),
        ]

    def start(self) -> list[Row]:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
        return [self._start("initialize", hello), self._start("server/discover", {"_meta": MODERN_META})]

    def _start(self, method: str, params: Mapping[str, Any]) -> Row:
        command = [TOOLREEVE, "mcp", "--workspace", str(self._workspace())]
        environment = self._environment(tools=True)
        median = statistics.median(_first_response(command, environment, method, params) for _ in range(STARTS))
        return Row(
            name=f"start to first response over stdio, `{method}`",
            value=f"{median * 1000:.0f} ms",
            p50=median,
            target="≤ 400 ms",
            met=median <= 0.4,
        )

    def _faster(self, kind: str, targets: Mapping[str, Target]) -> list[Row]:
        rows = []
        for together in (1, 32):
            spent = _in_turns(targets, together)
            ours = spent["ours"].wall
            for name, against, least in (("sdk", "the bare low-level SDK", 2), ("fastmcp", "FastMCP", 8)):
                ratio = spent[name].wall / ours
                rows.append(
                    Row(
                        name=f"{kind} `echo`, {together} at once, calls/s against {against}",
                        value=f"{1 / ours:,.0f} against {1 / spent[name].wall:,.0f}",
                        ratio=ratio,
                        p50=ours,
                        target=f"≥ {least}×",
                        met=ratio >= least,
                    )
                )
        return rows

    def _ours(self) -> OverStdio:
        command = [TOOLREEVE, "mcp", "--workspace", str(self._workspace())]
        return self._close_later(OverStdio(command, env=self._environment(tools=True)).initialize())

    def _gateway(self, upstream: Sequence[str], danger: str = "safe") -> OverStdio:
        """`echo` only reads, which the user says here; what may change something is on disk before it is answered."""
        home = self._environment(tools=False)
        config = Path(home["XDG_CONFIG_HOME"]) / "toolreeve" / "toolreeve.toml"
        config.parent.mkdir(parents=True)
        program, args = json.dumps(upstream[0]), json.dumps(list(upstream[1:]))
        server = f'[mcp_servers.up]\ncommand = {program}\nargs = {args}\ndanger = "{danger}"\n'
        config.write_text(f'[policy]\nallowed_tools = ["up__*"]\n{server}')
        gateway = [TOOLREEVE, "mcp", "--workspace", str(self._workspace())]
        return self._close_later(OverStdio(gateway, tool="up__echo", env=home).initialize())

    def _environment(self, *, tools: bool) -> dict[str, str]:
        """A home of its own for each server, with nothing configured but the tool."""
        self._count += 1
        home = self._folder / f"home{self._count}"
        given = {"XDG_CONFIG_HOME": str(home / "config"), "XDG_STATE_HOME": str(home / "state")}
        return environment(**given, **({"TOOLREEVE_TOOLS": str(HERE / "echo.py")} if tools else {}))

    def _workspace(self) -> Path:
        place = self._folder / "work"
        place.mkdir(exist_ok=True)
        return place

    def _close_later(self, target: T) -> T:
        self._stack.callback(target.close)
        return target


_CLIENT = {"name": "bench", "version": "1"}


def _in_turns(targets: Mapping[str, Target], together: int) -> dict[str, Spent]:
    rounds: dict[str, list[Spent]] = {name: [] for name in targets}
    for number in range(ROUNDS + 1):
        for name, target in targets.items():
            spent = measure(target, CALLS, together)
            if number:  # the first round only warms up
                rounds[name].append(spent)
    return {
        name: Spent(
            statistics.median(each.wall for each in spent),
            statistics.median(each.cpu for each in spent),
        )
        for name, spent in rounds.items()
    }


def _first_response(
    command: Sequence[str], environment: Mapping[str, str], method: str, params: Mapping[str, Any]
) -> float:
    began = time.perf_counter()
    server = OverStdio(command, env=environment)
    server.ask(method, params)
    took = time.perf_counter() - began
    server.close()
    return took


def _listing(target: OverStdio) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        target.ask("tools/list", {})
        times.append(time.perf_counter() - began)
    return statistics.median(times)
