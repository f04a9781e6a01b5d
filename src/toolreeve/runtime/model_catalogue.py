"""Model catalogue: asks the configured providers which models they offer.

The addresses are the operator's own, so the network guard does not apply to them.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolreeve.core.context import ModelListing

if TYPE_CHECKING:
    from toolreeve.config.model_providers import ModelProviderSpec

TIMEOUT = 5.0


class ConfiguredModels:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    async def list(self) -> ModelListing:
        """Providers are asked side by side; one that fails is reported and does not stop the others."""
        from toolreeve.config.model_providers import configured_providers

        providers = configured_providers(self._environ)
        if not providers:
            return ModelListing()
        answers = await asyncio.gather(*(self._ask(spec) for spec in providers.values()))
        found = dict(zip(providers, answers, strict=True))
        return ModelListing(
            models={name: answer for name, answer in found.items() if not isinstance(answer, str)},
            problems={name: answer for name, answer in found.items() if isinstance(answer, str)},
        )

    async def _ask(self, spec: "ModelProviderSpec") -> tuple[str, ...] | str:
        """The models, or why there are none."""
        import httpx2

        header, prefix = spec.auth
        headers = dict(spec.headers) | {header: f"{prefix}{spec.key(self._environ) or 'none'}"}
        path = "/v1/models" if "anthropic-version" in headers else "/models"
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT, headers=headers) as client:
                response = await client.get(f"{spec.address(self._environ).rstrip('/')}{path}")
            response.raise_for_status()
            return _names(response.json())
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as problem:
            return f"{type(problem).__name__}: {problem}"[:200]


def _names(listing: Any) -> tuple[str, ...]:
    """`{"data": [{"id": …}]}`, or Gemini's `{"models": [{"name": "models/…"}]}`."""
    if "data" in listing:
        return tuple(str(model["id"]) for model in listing["data"])
    return tuple(str(model["name"]).removeprefix("models/") for model in listing["models"])
