"""What does a closed place consist of? The paths that exist in it and what may be done with each, as plain data.

It crosses from the runtime to the process that builds the place; every path is absolute and free of links.
"""

import json
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """`protected` paths lie inside writable ones and stay as they are; `hidden` ones are covered.

    `programs` is None where every program of the system may run; else only these, by the name they are found under.
    `scratch` is a directory of the host's for temporary files where the place has none of its own.
    `uid` is what programs run as where the runtime is root, and `owner` whose files these then are; None elsewhere.
    """

    tier: str
    network: str
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    programs: dict[str, str] | None = None
    uid: int | None = None
    owner: tuple[int, int] = (0, 0)
    scratch: str = ""
    temporary_mb: int = 64
    counts_memory: bool = False
    counts_processes: bool = False

    def to_json(self) -> bytes:
        return json.dumps(self._asdict()).encode()

    @staticmethod
    def from_json(text: bytes) -> "Plan":
        told: dict[str, Any] = json.loads(text)
        for name in ("readable", "writable", "protected", "hidden", "owner"):
            told[name] = tuple(told[name])
        return Plan(**told)
