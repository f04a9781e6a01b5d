"""Labels of results by source: configured, else by kind of tool.

A configured source vouches with its short fields only: prose in it is still text of others. What programs of the
user's own (Python, YAML) return counts as trusted unless they reach the network or say otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from toolreeve.core.effects import EffectKind
from toolreeve.core.labels import Confidentiality, Integrity, Labels
from toolreeve.core.tool import ToolSpec
from toolreeve.policy.known_tools import names_of

ORDINARY = Labels()
FOREIGN = Labels(Integrity.UNTRUSTED, Confidentiality.PUBLIC)
"""The open web."""
UPSTREAM = Labels(Integrity.UNTRUSTED, Confidentiality.PRIVATE)
"""MCP servers: mail, chat, calendars, whatever the user is logged in to."""
FILES = Labels(Integrity.UNTRUSTED, Confidentiality.WORKSPACE)
"""Files and what commands print: anybody may have written them."""
_WEB = frozenset(("web", "http"))
_FILE = frozenset(("file", "shell", "quality"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRule:
    """What the configuration says about the results of some tools. `fields` are those that vouch; empty for all short
    ones. A `tighten_only` rule comes from a project's file: it can only lower trust."""

    tool: tuple[str, ...]
    integrity: Integrity | None = None
    confidentiality: Confidentiality | None = None
    fields: tuple[str, ...] = ()
    tighten_only: bool = False

    def names(self, spec: ToolSpec) -> bool:
        return any(
            fnmatchcase(name, pattern) for name in names_of(spec.name, server=spec.server) for pattern in self.tool
        )

    def apply(self, labels: Labels) -> Labels:
        stated = Labels(self.integrity or labels.integrity, self.confidentiality or labels.confidentiality)
        return labels.join(stated) if self.tighten_only else stated


@dataclass(frozen=True, slots=True)
class ToolSource:
    """The labels of what a tool returns, and which of its fields vouch."""

    labels: Labels
    fields: tuple[str, ...] = ()
    declared: bool = False
    of_files: bool = False

    @property
    def is_foreign(self) -> bool:
        """Whether strangers write what it returns, as on the web or in mail; not merely files of the workspace."""
        return self.labels.integrity is Integrity.UNTRUSTED and not self.of_files


def source_of(spec: ToolSpec, rules: Sequence[SourceRule] = ()) -> ToolSource:
    labels = _default(spec)
    fields: tuple[str, ...] = ()
    declared = False
    for rule in rules:
        if rule.names(spec):
            labels = rule.apply(labels)
            fields = fields or rule.fields
            declared = declared or not rule.tighten_only
    of_files = spec.server is None and spec.category in _FILE
    return ToolSource(labels, fields, declared, of_files)


def _default(spec: ToolSpec) -> Labels:
    if spec.server is not None:
        return UPSTREAM
    if spec.category in _WEB:
        return FOREIGN
    return FILES if spec.category in _FILE else ORDINARY


def labels_by_effects(labels: Labels, kinds: set[EffectKind]) -> Labels:
    """A tool of the user's own that reaches the network returns what the network holds."""
    return labels.join(FOREIGN) if EffectKind.NET in kinds or EffectKind.SEND in kinds else labels
