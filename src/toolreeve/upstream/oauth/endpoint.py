"""Requests to an authorization server, encrypted wherever they leave the machine."""

import asyncio
from typing import TYPE_CHECKING

import httpx2

from toolreeve.core.urls import parse_url
from toolreeve.guard.network.addresses import Zone, zone
from toolreeve.upstream.oauth.callback import LoginFailed
from toolreeve.upstream.transports.http_client import HttpClient

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

REQUEST_SECONDS = 30.0


class OAuthEndpoint:
    """Uses a client with the network access of the server's own, without its headers."""

    def __init__(self, client: HttpClient) -> None:
        self._url = client.url
        self._client = client.new_client()

    async def drive(self, provider: "OAuthClientProvider", challenge: httpx2.Response | None) -> None:
        """Run the SDK's flow, with the response that the server has already given. The flow is about a request that is
        never sent: the waiting requests are sent by their own callers. Raises LoginFailed and what `send` raises."""
        from mcp.client.auth import OAuthFlowError

        subject = httpx2.Request("POST", self._url)
        if challenge is not None and (version := challenge.request.headers.get("mcp-protocol-version")):
            subject.headers["mcp-protocol-version"] = version
        steps = provider.async_auth_flow(subject)
        try:
            step = await anext(steps)
            while step is not subject or challenge is not None:
                if step is subject and challenge is not None:
                    response = challenge
                    challenge = None
                else:
                    response = await self.send(step)
                step = await steps.asend(response)
        except OAuthFlowError as problem:
            raise LoginFailed(str(problem)) from None
        finally:
            await steps.aclose()

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Raises LoginFailed, ToolError, TimeoutError and what the HTTP library raises."""
        self.check(str(request.url))
        request.extensions["timeout"] = httpx2.Timeout(REQUEST_SECONDS).as_dict()
        for name in ("user-agent", "accept-encoding"):
            request.headers[name] = self._client.headers[name]
        async with asyncio.timeout(REQUEST_SECONDS):
            return await self._client.send(request)

    def check(self, url: str) -> None:
        """Codes and secrets travel unencrypted only within this machine, or to the origin that the user configured
        without TLS. Raises LoginFailed, ToolError."""
        target = parse_url(url)
        is_local = target.host == "localhost" or (target.address and zone(target.address) is Zone.LOOPBACK)
        if target.scheme != "https" and not is_local and target.origin != parse_url(self._url).origin:
            raise LoginFailed(f"the server wants the login sent unencrypted, to {target.origin}")

    async def close(self) -> None:
        await self._client.aclose()
