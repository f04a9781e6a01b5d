"""The [connectors] table: tools for services the user has accounts with."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Connectors:
    """Tools for the services that the user has an account with: mail, calendar, code hosting, usage reports."""

    enabled: Annotated[
        tuple[str, ...],
        Field(
            "The connector tools to register, as names or patterns such as gmail_*; others are left out. Empty: those "
            "whose secrets stand in secrets.toml or the environment, except linkedin_* and github_*, which are used "
            "only if named here. `toolreeve tools --all` shows what each lacks.",
            ProjectScope.NEVER,
        ),
    ] = ()
    gmail_url: Annotated[
        str,
        Field("The address of the Gmail API.", ProjectScope.NEVER),
    ] = "https://gmail.googleapis.com"
    calendar_url: Annotated[
        str,
        Field("The address of the Google Calendar API.", ProjectScope.NEVER),
    ] = "https://www.googleapis.com"
    google_login_url: Annotated[
        str,
        Field("The address of Google's login page.", ProjectScope.NEVER),
    ] = "https://accounts.google.com"
    google_oauth_url: Annotated[
        str, Field("The address of Google's token and revocation endpoints.", ProjectScope.NEVER)
    ] = "https://oauth2.googleapis.com"
    anthropic_url: Annotated[
        str,
        Field("The address of the Anthropic Admin API.", ProjectScope.NEVER),
    ] = "https://api.anthropic.com"
    github_url: Annotated[str, Field("The address of the GitHub API.", ProjectScope.NEVER)] = "https://api.github.com"
    linkedin_url: Annotated[
        str,
        Field("The address of LinkedIn's guest pages.", ProjectScope.NEVER),
    ] = "https://www.linkedin.com"
