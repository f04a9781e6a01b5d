"""The [approval] table: how long to wait, how long a yes holds."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """How people are asked for approval."""

    ask_client: Annotated[
        bool,
        Field(
            "Whether an MCP client that can show forms is asked itself. If false, questions go to your terminal or "
            "stay pending: for clients that answer their forms without a person.",
            ProjectScope.TURN_OFF,
        ),
    ] = True
    timeout: Annotated[
        float,
        Field("Seconds to wait for a person's answer.", ProjectScope.LOWER, above=0),
    ] = 60.0
    pending_hours: Annotated[
        float,
        Field("Hours that a pending approval stays open for an answer.", ProjectScope.LOWER, above=0),
    ] = 24.0
    dead_time: Annotated[
        float,
        Field(
            "Seconds after a question is first shown during which a click or a key decides nothing.",
            ProjectScope.NEVER,
            at_least=0,
        ),
    ] = 0.3
    escalate_after: Annotated[
        float,
        Field(
            "Seconds after which the next channel is asked as well, in their order; 0 asks all of them at once.",
            ProjectScope.NEVER,
            at_least=0,
        ),
    ] = 0.0
    notify: Annotated[
        tuple[str, ...],
        Field(
            "Services that are notified of every question, as Apprise URLs; ${secret:NAME} keeps credentials out of "
            "the file. Needs the extra notify.",
            ProjectScope.NEVER,
        ),
    ] = ()
    link_url: Annotated[
        str,
        Field("The address of your console, for the links in notifications.", ProjectScope.NEVER),
    ] = "http://127.0.0.1:8733"
    auto_approval_file: Annotated[
        str | None,
        Field(
            "Your auto-approval policies; by default auto_approval_policies.yaml next to your toolreeve.toml.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = None
    governors_file: Annotated[
        str | None,
        Field(
            "Your governors; by default governors.yaml next to your toolreeve.toml.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = None
    session_hours: Annotated[
        float,
        Field("Hours after which an approval for the session ends at the latest.", ProjectScope.LOWER, above=0),
    ] = 12.0
