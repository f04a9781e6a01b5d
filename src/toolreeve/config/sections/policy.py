"""The [policy] table: mode, tool lists, policy files and budget."""

from dataclasses import dataclass
from typing import Annotated, Literal

from toolreeve.config.field import Field, ProjectScope

Mode = Literal["default", "accept_edits", "plan", "strict", "bypass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which calls may run."""

    mode: Annotated[
        Mode,
        Field(
            "default: safe calls run, the rest need approval. accept_edits: so, and changes inside the workspace that "
            "can be undone run. strict: whatever is not allowed needs approval, and "
            "dangerous calls are denied. plan: only read-only calls run. bypass: set only in code or with --mode.",
            ProjectScope.STRICTER,
        ),
    ] = "default"
    allowed_tools: Annotated[
        tuple[str, ...],
        Field("Tools that run without approval; patterns such as git__* are allowed.", ProjectScope.NEVER),
    ] = ()
    denied_tools: Annotated[
        tuple[str, ...],
        Field("Tools that never run. The lists of all sources add up.", ProjectScope.ADD),
    ] = ()
    files: Annotated[
        tuple[str, ...],
        Field(
            "Your policy files; by default policy.yaml next to your toolreeve.toml. "
            "A policy.yaml in the workspace is read as well and may only tighten.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ()
    accept_edits_deletes: Annotated[
        int,
        Field(
            "How many files one command may delete without approval in the mode accept_edits. Deleting what version "
            "control cannot restore always needs approval.",
            ProjectScope.LOWER,
            at_least=0,
        ),
    ] = 10
    flow: Annotated[
        Literal["tighten", "vouch", "off"],
        Field(
            "Information flow. tighten: after untrusted text was read, a recipient, host, id, amount or credential "
            "that nobody vouches for needs approval. vouch: so, and allow rules with labels: {vouched: all} hold. "
            "off: only rules with labels look at it.",
            ProjectScope.NEVER,
        ),
    ] = "tighten"
    flow_records: Annotated[
        bool,
        Field(
            "Whether fields of records that you named vouch: the id of the file whose title you said.",
            ProjectScope.TURN_OFF,
        ),
    ] = True
    own_identifiers: Annotated[
        tuple[str, ...],
        Field("Your own mail addresses, account numbers and names of users: they are vouched for.", ProjectScope.NEVER),
    ] = ()
    known_days: Annotated[
        float,
        Field("Days that a recipient stays known after you said so.", ProjectScope.LOWER, at_least=0),
    ] = 90.0
    budget_limit: Annotated[
        float | None,
        Field("Total budget of all calls in dollars; no limit if not set.", ProjectScope.LOWER, at_least=0),
    ] = None
