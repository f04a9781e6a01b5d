"""Which calls may run, who is asked, and how much may one take?"""

from dataclasses import dataclass
from typing import Annotated, Literal

from toolreeve.config.field import Field, ProjectScope

Mode = Literal["default", "plan", "strict", "bypass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which calls may run."""

    mode: Annotated[
        Mode,
        Field(
            "default: safe calls run, the rest ask. strict: what is not allowed asks, what is dangerous is denied. "
            "plan: only read-only calls. bypass is taken from code or --mode alone.",
            ProjectScope.STRICTER,
        ),
    ] = "default"
    allowed_tools: Annotated[
        tuple[str, ...],
        Field("Tools that run without being asked about; patterns such as git__* are fine.", ProjectScope.NEVER),
    ] = ()
    denied_tools: Annotated[
        tuple[str, ...],
        Field("Tools that never run. The lists of all sources add up.", ProjectScope.ADD),
    ] = ()
    files: Annotated[
        tuple[str, ...],
        Field(
            "Your policy files; policy.yaml beside this file is read if none is named. "
            "A policy.yaml in the workspace is read as well and may only tighten.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ()
    budget_limit: Annotated[
        float | None,
        Field("Dollars that all calls together may spend; no limit if not set.", ProjectScope.LOWER, at_least=0),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """How people are asked."""

    timeout: Annotated[
        float,
        Field("Seconds to wait for a person's answer.", ProjectScope.LOWER, above=0),
    ] = 60.0
    pending_hours: Annotated[
        float,
        Field(
            "Hours that a call may wait for an answer where nobody could be asked at once.", ProjectScope.LOWER, above=0
        ),
    ] = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a call may use."""

    timeout: Annotated[
        float,
        Field("Seconds that a call may take where its tool does not say.", ProjectScope.LOWER, above=0),
    ] = 60.0
    concurrency: Annotated[
        int,
        Field("Calls that may run at the same time.", ProjectScope.LOWER, at_least=1),
    ] = 64
