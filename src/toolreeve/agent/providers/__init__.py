"""Model providers: each turns a conversation into one reply of its API."""

import importlib
from collections.abc import Callable, Mapping
from typing import Protocol

from toolreeve.agent.errors import ModelError, ModelErrorKind
from toolreeve.agent.messages import ModelReply, ModelRequest
from toolreeve.config.model_providers import MODEL_PROVIDERS
from toolreeve.core.suggest import hint_similar

OnText = Callable[[str], None]


class ModelProvider(Protocol):
    """Raises ModelError. `complete` reports text as it arrives and returns only a complete reply."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply: ...

    async def close(self) -> None: ...


_MODULES = {
    "openai": "openai_chat",
    "openai_responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "ollama": "openai_chat",
}


def find_key(provider: str, api_key: str | None, environ: Mapping[str, str]) -> str | None:
    """None for a provider that needs no key. Raises ModelError for an unknown one or a missing key."""
    spec = MODEL_PROVIDERS.get(provider)
    if spec is None:
        hint = hint_similar(provider, MODEL_PROVIDERS)
        known = ", ".join(MODEL_PROVIDERS)
        raise ModelError(ModelErrorKind.CONFIGURATION, f"unknown model provider {provider!r}{hint}; known: {known}")
    key = api_key or spec.key(environ)
    if spec.keys and not key:
        raise ModelError(ModelErrorKind.CONFIGURATION, f"{provider}: no API key; set {' or '.join(spec.keys)}")
    return key


def connect(
    provider: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float = 600.0,
    environ: Mapping[str, str],
) -> ModelProvider:
    """A client of the provider. Raises ModelError for an unknown one, a missing key or a missing package."""
    key = find_key(provider, api_key, environ)
    address = base_url or MODEL_PROVIDERS[provider].address(environ)
    try:
        module = importlib.import_module(f"toolreeve.agent.providers.{_MODULES[provider]}")
    except ModuleNotFoundError as missing:
        message = f"{provider} needs the package {missing.name!r}: pip install 'toolreeve[agent]'"
        raise ModelError(ModelErrorKind.CONFIGURATION, message) from None
    found: ModelProvider = module.connect(provider, api_key=key or "none", base_url=address, timeout=timeout)
    return found
