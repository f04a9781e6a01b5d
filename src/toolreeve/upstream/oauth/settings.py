"""The `oauth` table of a server's configuration, checked key by key."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from toolreeve.core.errors import ConfigError

GRANTS = ("authorization_code", "client_credentials")
AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """A client that was registered beforehand has a `client_id`; without one a client is registered when needed.

    `issuer` is the authorization server that the id and secret belong to: no other gets them. Without it they belong to
    the first one at which a login succeeds.
    """

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: str | None = None
    issuer: str | None = None
    client_metadata_url: str | None = None
    redirect_port: int | None = None
    grant: str = "authorization_code"
    token_endpoint_auth_method: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any] | None, *, source: str, server: str) -> "OAuthSettings":
        """Raises ConfigError, which names the key."""
        known = {each.name for each in fields(cls)}
        checked: dict[str, Any] = {}
        for key, value in (given or {}).items():
            problem = _problem(key, value)
            if key not in known:
                problem = f"is unknown; known are {', '.join(sorted(known))}"
            if problem:
                raise ConfigError(problem, source=source, key=f"{server}.oauth.{key}")
            checked[key] = " ".join(value) if isinstance(value, list | tuple) else value
        settings = cls(**checked)
        if settings.grant == "client_credentials" and not (settings.client_id and settings.client_secret):
            fix = "add client_id and client_secret"
            raise ConfigError("needs a registered client", source=source, key=f"{server}.oauth.grant", fix=fix)
        return settings


def _problem(key: str, value: Any) -> str | None:
    match key:
        case "redirect_port":
            is_port = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65536
            return None if is_port else "must be a port from 1 to 65535"
        case "scopes":
            return None if isinstance(value, str) or _is_texts(value) else "must be a text or a list of texts"
        case "grant":
            return None if value in GRANTS else f"must be one of {', '.join(GRANTS)}"
        case "token_endpoint_auth_method":
            return None if value in AUTH_METHODS else f"must be one of {', '.join(AUTH_METHODS)}"
        case "client_metadata_url":
            is_url = isinstance(value, str) and value.startswith("https://") and value.count("/") > 2
            return None if is_url else "must be an https URL with a path"
    return None if isinstance(value, str) and value else "must be a text that is not empty"


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
