"""HTTP transport: requests posted to `/control`, responses streamed from `/stream`."""

from collections.abc import AsyncIterator

import httpx2

from toolreeve.agent.control.transports.transport import check_connected, check_unconnected


class HTTPTransport:
    def __init__(self, base_url: str, *, timeout: float = 30.0) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url={base_url!r}: it must begin with http:// or https://")
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None

    async def connect(self) -> None:
        check_unconnected(connected=self._client is not None)
        self._client = httpx2.AsyncClient(base_url=self._base_url, timeout=self._timeout)

    async def write(self, data: str) -> None:
        check_connected(connected=self._client is not None)
        assert self._client is not None  # noqa: S101 - checked above, for the type checker
        try:
            response = await self._client.post(
                "/control", content=data.encode(), headers={"Content-Type": "application/json"}
            )
        except httpx2.HTTPError as problem:
            raise ConnectionError(f"{self._base_url}/control: {problem}") from problem
        if response.is_error:
            raise ConnectionError(f"{self._base_url}/control answered with status {response.status_code}")

    async def read_messages(self) -> AsyncIterator[str]:
        """Comments, and fields other than `data`, are ignored; an event ends at an empty line."""
        check_connected(connected=self._client is not None)
        assert self._client is not None  # noqa: S101 - checked above, for the type checker
        try:
            async with self._client.stream("GET", "/stream", timeout=None) as response:
                if response.is_error:
                    raise ConnectionError(f"{self._base_url}/stream answered with status {response.status_code}")
                data: list[str] = []
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        data.append(line.removeprefix("data:").removeprefix(" "))
                    elif not line and data:
                        yield "\n".join(data)
                        data = []
        except httpx2.HTTPError as problem:
            raise ConnectionError(f"{self._base_url}/stream: {problem}") from problem

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    def is_ready(self) -> bool:
        return self._client is not None
