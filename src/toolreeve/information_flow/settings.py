"""Settings of the information flow, as the composition root gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolreeve.policy.flow.sources import SourceRule

Use = Literal["tighten", "vouch", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """`use` off adds no questions; rules with labels hold all the same. `own` are the user's identifiers, `authority`
    is what the configuration says about parameters of tools. `infers`: records that the user named vouch. `known_days`
    is how long a recipient stays known."""

    use: Use = "tighten"
    sources: tuple[SourceRule, ...] = ()
    authority: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    infers: bool = True
    known_days: float = 90.0
