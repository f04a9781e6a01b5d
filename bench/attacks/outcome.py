"""What came of an attack? Counted for each list of payloads, with every one that got through."""

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Tally:
    """`refused` was said no to; `harmless` was taken as an ordinary name and led nowhere; `escaped` got through;
    `wronged` was harmless from the start and refused all the same."""

    name: str
    payloads: int = 0
    attempts: int = 0
    refused: int = 0
    harmless: int = 0
    escaped: list[str] = field(default_factory=list)
    wronged: list[str] = field(default_factory=list)
