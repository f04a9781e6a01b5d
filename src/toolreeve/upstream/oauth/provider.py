"""The SDK's OAuth flow, with our storage, scopes and issuer binding.

A client that the user registered beforehand is used with its own authorization server and with no other. This module
loads the SDK: import it only when a server requires a login.
"""

import asyncio
import logging
import time
from typing import Any, TypeVar

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from toolreeve.upstream.oauth.callback import LoginFailed
from toolreeve.upstream.oauth.settings import OAuthSettings
from toolreeve.upstream.oauth.token_file import TokenFile

NAME = "Toolreeve"
Model = TypeVar("Model", bound=BaseModel)

# The SDK logs the response of the authorization server to a failed login. The user gets it in the error.
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
logging.getLogger("mcp.client.auth").propagate = False


class StoredGrant:
    """The SDK's view of the token file. With `fresh`, tokens from before this login are ignored."""

    def __init__(self, file: TokenFile, settings: OAuthSettings, *, fresh: bool) -> None:
        self._file = file
        self._settings = settings
        self._is_fresh = fresh

    async def get_tokens(self) -> OAuthToken | None:
        return None if self._is_fresh else parsed(OAuthToken, self._file.read().get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._is_fresh = False
        expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        await self._update(tokens=dumped(tokens), expires_at=expires_at)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._settings.client_id is None:
            return parsed(OAuthClientInformationFull, self._file.read().get("client"))
        return self._registered(self._settings.client_id)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        if self._settings.client_id is not None:
            raise LoginFailed(
                "the configured client (oauth.client_id) belongs to another authorization server than the server's"
            )
        await self._update(client=dumped(client_info))

    def bound_issuer(self) -> str | None:
        issuer = self._settings.issuer or self._file.read().get("issuer")
        return issuer if isinstance(issuer, str) and self._settings.client_id is not None else None

    async def _update(self, **changes: Any) -> None:
        await asyncio.to_thread(self._file.update, **changes)

    async def learn(self, provider: OAuthClientProvider) -> None:
        """Store the metadata that a later renewal needs."""
        context = provider.context
        if context.oauth_metadata is not None:
            resource = context.protected_resource_metadata
            await self._update(
                metadata=dumped(context.oauth_metadata),
                issuer=context.auth_server_url or str(context.oauth_metadata.issuer),
                resource=None if resource is None else dumped(resource),
            )

    def _registered(self, client_id: str) -> OAuthClientInformationFull:
        settings = self._settings
        default_method = "client_secret_basic" if settings.client_secret else "none"
        return OAuthClientInformationFull(
            client_id=client_id,
            client_secret=settings.client_secret,
            token_endpoint_auth_method=settings.token_endpoint_auth_method or default_method,
            issuer=self.bound_issuer(),
        )


class OAuthProvider(OAuthClientProvider):
    """The SDK's flow with the user's own scopes, and bound to the issuer of the user's own client."""

    def __init__(
        self, url: str, settings: OAuthSettings, storage: StoredGrant, redirect_uri: str, **handlers: Any
    ) -> None:
        metadata = OAuthClientMetadata(client_name=NAME, redirect_uris=[AnyUrl(redirect_uri)], scope=settings.scopes)
        super().__init__(url, metadata, storage, client_metadata_url=settings.client_metadata_url, **handlers)
        self._settings = settings
        self._storage = storage

    def _select_authorization_server(self, advertised: list[str]) -> str:
        bound = self._storage.bound_issuer()
        if bound is None:
            return advertised[0]
        for each in advertised:
            if each.rstrip("/") == bound.rstrip("/"):
                return each
        raise LoginFailed(
            f"the server's login is at {advertised[0]!r}, but the configured client belongs to {bound!r} (oauth.issuer)"
        )

    async def _perform_authorization(self) -> httpx2.Request:
        context = self.context
        context.client_metadata.scope = union_scopes(self._settings.scopes, context.client_metadata.scope)
        return await super()._perform_authorization()


def new_provider(
    url: str, settings: OAuthSettings, storage: StoredGrant, redirect_uri: str, **handlers: Any
) -> OAuthClientProvider:
    if settings.grant == "client_credentials" and settings.client_id and settings.client_secret:
        method = settings.token_endpoint_auth_method
        return ClientCredentialsOAuthProvider(
            url,
            storage,
            settings.client_id,
            settings.client_secret,
            "client_secret_post" if method == "client_secret_post" else "client_secret_basic",
            settings.scopes,
            settings.issuer,
        )
    return OAuthProvider(url, settings, storage, redirect_uri, **handlers)


def recall(provider: OAuthClientProvider, grant: dict[str, Any], *, expired: bool) -> None:
    """Give a provider the stored metadata, so that it can renew a token without a login."""
    context = provider.context
    context.oauth_metadata = parsed(OAuthMetadata, grant.get("metadata"))
    context.protected_resource_metadata = parsed(ProtectedResourceMetadata, grant.get("resource"))
    context.auth_server_url = grant.get("issuer") if context.protected_resource_metadata is not None else None
    context.token_expiry_time = 1.0 if expired else grant.get("expires_at")


def parsed(model: type[Model], value: Any) -> Model | None:
    if value is None:
        return None
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def dumped(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def code_result(code: str, state: str, issuer: str | None) -> AuthorizationCodeResult:
    return AuthorizationCodeResult(code=code, state=state, iss=issuer)
