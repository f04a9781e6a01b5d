"""Sandbox plan: the paths that exist in it, and their use.

Plain data that crosses from the runtime to the supervisor. Every path is absolute; links to `sources` or to writable
paths are resolved here, and not again when they are mounted.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """`protected` paths, named by the operator, and `guarded` ones, found, lie in writable ones and stay as they are;
    `hidden` ones are covered. `contents` are files that show these bytes, encoded as Latin-1, instead of their own.
    `viewed` are roots that only this sandbox may not change: they are mounted read-only, and their files are the
    command's own as if they were writable. `sources` are the real paths of those readable ones that are reached over
    links. `git_identity` is added to the git settings in the sandbox.

    `programs` is None where every program of the system may run; else only these, by the path they are found at.
    `scratch` is a directory of the host for temporary files where the sandbox has no mounts of its own.
    `layer_mb` is the size of the layer over the writable paths of a trial; 0 where programs change them directly.
    `uid` is what programs run as where the runtime is root, and `owner` whose files these then are; None elsewhere.
    """

    tier: str
    network: str
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    viewed: tuple[str, ...] = ()
    sources: dict[str, str] = {}  # noqa: RUF012  # never changed
    protected: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    contents: dict[str, str] = {}  # noqa: RUF012  # never changed
    git_identity: str = ""
    programs: dict[str, str] | None = None
    uid: int | None = None
    owner: tuple[int, int] = (0, 0)
    scratch: str = ""
    temporary_mb: int = 64
    counts_memory: bool = False
    counts_processes: bool = False
    layer_mb: int = 0

    def to_json(self) -> bytes:
        return json.dumps(self._asdict()).encode()

    @staticmethod
    def from_json(text: bytes) -> "Plan":
        fields: dict[str, Any] = json.loads(text)
        for name in ("readable", "writable", "viewed", "protected", "guarded", "hidden", "owner"):
            fields[name] = tuple(fields[name])
        return Plan(**fields)


def within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """Without those that lie inside another."""
    kept: list[str] = []
    for path in sorted(set(paths), key=len):
        if not any(within(path, root) for root in kept):
            kept.append(path)
    return tuple(kept)
