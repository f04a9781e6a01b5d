"""What policy files declare about the flow of information: sources and authority.

A project's file may only tighten: it can lower trust and add authority, never the reverse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigError
from toolreeve.core.labels import Authority, Confidentiality, Integrity
from toolreeve.policy.flow.authority import read_parameter
from toolreeve.policy.flow.sources import SourceRule

_RAISES = frozenset((Integrity.USER, Integrity.TRUSTED))


@dataclass(frozen=True, slots=True)
class FlowDeclarations:
    sources: tuple[SourceRule, ...] = ()
    authority: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def joined(self, other: "FlowDeclarations") -> "FlowDeclarations":
        merged = {name: dict(parameters) for name, parameters in self.authority.items()}
        for name, parameters in other.authority.items():
            merged.setdefault(name, {}).update(parameters)
        return FlowDeclarations((*self.sources, *other.sources), merged)


def read_declarations(document: Document, *, tighten_only: bool = False) -> tuple[FlowDeclarations, list[ConfigError]]:
    """The declarations of a document that fits the schema of policy files, and every problem with them."""
    value = document.value if isinstance(document.value, Mapping) else {}
    problems: list[ConfigError] = []
    sources = [
        _source(document, index, entry, problems, tighten_only=tighten_only)
        for index, entry in enumerate(value.get("sources") or ())
        if isinstance(entry, Mapping)
    ]
    authority = value.get("authority") or {}
    for tool, parameters in authority.items():
        for name, text in parameters.items():
            _check(document, (tool, name), str(text), problems, tighten_only=tighten_only)
    return FlowDeclarations(tuple(sources), authority), problems


def _source(
    document: Document, index: int, entry: Mapping[str, Any], problems: list[ConfigError], *, tighten_only: bool
) -> SourceRule:
    integrity = Integrity(entry["integrity"]) if "integrity" in entry else None
    if tighten_only and integrity in _RAISES:
        fix = "declare it in your own policy file"
        problem = "a project's policy may only lower trust in a source"
        problems.append(document.error(problem, path=("sources", index, "integrity"), fix=fix))
    confidentiality = Confidentiality(entry["confidentiality"]) if "confidentiality" in entry else None
    tool = entry["tool"]
    return SourceRule(
        tool=(tool,) if isinstance(tool, str) else tuple(tool),
        integrity=integrity,
        confidentiality=confidentiality,
        fields=tuple(entry.get("fields", ())),
        tighten_only=tighten_only,
    )


def _check(
    document: Document, where: Sequence[str], text: str, problems: list[ConfigError], *, tighten_only: bool
) -> None:
    kinds = ", ".join(Authority)
    try:
        read_parameter(text)
    except ValueError:
        fix = f"write one of {kinds}; with /closed or /open after it for a namespace"
        problems.append(document.error(f"{text!r:.60} is no authority", path=("authority", *where), fix=fix))
        return
    if tighten_only and (text.startswith(Authority.NONE) or text.endswith("/closed")):
        fix = "declare it in your own policy file"
        problem = "a project's policy may add authority to a parameter, not remove it"
        problems.append(document.error(problem, path=("authority", *where), fix=fix))


FLOW_SCHEMA: Mapping[str, Any] = {
    "sources": {
        "type": "array",
        "description": "Who writes what tools return. A trusted source vouches with its short fields.",
        "items": {
            "type": "object",
            "required": ["tool"],
            "additionalProperties": False,
            "properties": {
                "tool": {
                    "anyOf": [
                        {"type": "string", "minLength": 1},
                        {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
                    ],
                    "description": "The tools, by any of their names; * and ? are wildcards.",
                },
                "integrity": {"enum": list(Integrity), "description": "Who vouches for the data."},
                "confidentiality": {"enum": list(Confidentiality), "description": "Who may see the data."},
                "fields": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "description": "The fields that vouch; all short ones if not given.",
                },
            },
        },
    },
    "authority": {
        "type": "object",
        "description": "What parameters of tools decide: {tool: {parameter: destination/closed}}.",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
    },
}
"""The keys of policy files about the flow of information."""
