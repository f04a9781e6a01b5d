"""Pools: which workers run a tool, and what stays at the gateway."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolreeve.core.tool import ToolSpec
from toolreeve.core.toolset import Toolset
from toolreeve.execution.workers.signing import PoolKey

GATEWAY_TOOLS = frozenset({"undo", "read_output", "get_audit_log"})
"""They read the record, the undo store or results that were cut, which no worker has."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Pool:
    """`tools` are words of a toolset, `tags` labels of tools; a tool that either matches runs here. `keys`: the first
    one signs, all of them verify."""

    name: str
    tools: Toolset | None
    tags: frozenset[str]
    keys: Sequence[PoolKey]

    def takes(self, spec: ToolSpec) -> bool:
        if spec.name in GATEWAY_TOOLS:
            return False
        named = self.tools is not None and self.tools.includes(spec)
        return named or not self.tags.isdisjoint(spec.tags)


class Pools:
    """In the order of the configuration: the first that takes a tool runs it."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools: Mapping[str, Pool] = {pool.name: pool for pool in pools}
        self._found: dict[str, tuple[ToolSpec, Pool | None]] = {}

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._pools)

    def find(self, spec: ToolSpec) -> Pool | None:
        """None for a tool that runs at the gateway."""
        known, pool = self._found.get(spec.name, (None, None))
        if known is not spec:
            pool = next((each for each in self._pools.values() if each.takes(spec)), None)
            self._found[spec.name] = (spec, pool)
        return pool
