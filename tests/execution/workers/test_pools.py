"""Pools: which tool runs where."""

import pytest

from toolreeve.core.tool import ToolSpec
from toolreeve.core.toolset import read_toolset
from toolreeve.execution.workers.pools import GATEWAY_TOOLS, Pool, Pools
from toolreeve.runtime.builtin import TOOLS


def pool(name: str, *words: str, tags: tuple[str, ...] = ()) -> Pool:
    return Pool(name=name, tools=read_toolset(words) if words else None, tags=frozenset(tags), keys=())


def spec(name: str, **more: object) -> ToolSpec:
    return ToolSpec(name=name, description="", input={}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (spec("build_all"), "build"),
        (spec("x", server="github"), "github"),
        (spec("train", tags=("gpu",)), "gpu"),
        (spec("read_file"), None),
    ],
)
def test_tools_go_to_pools_by_pattern_server_or_tag(tool: ToolSpec, expected: str | None) -> None:
    pools = Pools([pool("build", "build_*"), pool("github", "github"), pool("gpu", tags=("gpu",))])

    found = pools.find(tool)

    assert (None if found is None else found.name) == expected


def test_the_first_pool_that_takes_a_tool_runs_it() -> None:
    pools = Pools([pool("a", "build"), pool("b", "*")])

    assert [pools.find(spec(name)).name for name in ("build", "test")] == ["a", "b"]  # type: ignore[union-attr]


def test_what_reads_the_record_stays_at_the_gateway() -> None:
    everything = Pools([pool("all", "all")])

    kept = {tool.spec.name for tool in TOOLS if everything.find(tool.spec) is None}

    assert kept == GATEWAY_TOOLS


def test_a_tool_that_is_defined_anew_is_looked_up_again() -> None:
    pools = Pools([pool("gpu", tags=("gpu",))])

    assert pools.find(spec("train")) is None
    assert pools.find(spec("train", tags=("gpu",))) is not None
