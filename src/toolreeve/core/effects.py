"""What would a call do to the world? Each tool says so before it runs; rules match tools or effects."""

from dataclasses import dataclass
from enum import StrEnum


class EffectKind(StrEnum):
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    EXEC = "exec"
    NET = "net"
    SEND = "send"
    SPEND = "spend"


@dataclass(frozen=True, slots=True)
class Effect:
    """`target` is the resolved path, host, argv or amount that the effect touches."""

    kind: EffectKind
    target: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}"
