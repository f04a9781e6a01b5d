"""The tally of a list of payloads, with each one that got through."""

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Tally:
    """`harmless` payloads were accepted as ordinary names and led nowhere; `escaped` ones got through; those
    `refused_wrongly` were harmless from the start."""

    name: str
    payloads: int = 0
    attempts: int = 0
    refused: int = 0
    harmless: int = 0
    escaped: list[str] = field(default_factory=list)
    refused_wrongly: list[str] = field(default_factory=list)
