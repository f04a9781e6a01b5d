"""Model providers: each turns a conversation into one reply of its API."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolreeve.agent.errors import ModelError, ModelErrorKind
from toolreeve.agent.messages import ModelReply, ModelRequest
from toolreeve.core.suggest import hint_similar

OnText = Callable[[str], None]


class ModelProvider(Protocol):
    """Raises ModelError. `complete` reports text as it arrives and returns only a complete reply."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply: ...

    async def models(self) -> list[str]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """`module` has a function `connect(api_key, base_url, timeout)`. `keys` are environment variables; a provider
    without any needs no key."""

    module: str
    keys: tuple[str, ...]
    base_url_variable: str
    base_url: str | None = None


PROVIDERS: Mapping[str, ProviderSpec] = {
    "openai": ProviderSpec("openai_chat", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "openai_responses": ProviderSpec("openai_responses", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "anthropic": ProviderSpec("anthropic", ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
    "gemini": ProviderSpec(
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com/v1beta",
    ),
    "ollama": ProviderSpec("openai_chat", (), "OLLAMA_BASE_URL", "http://127.0.0.1:11434/v1"),
}


def connect(
    provider: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float = 600.0,
    environ: Mapping[str, str],
) -> ModelProvider:
    """A client of the provider. Raises ModelError for an unknown one, a missing key or a missing package."""
    spec = PROVIDERS.get(provider)
    if spec is None:
        hint = hint_similar(provider, PROVIDERS)
        known = ", ".join(PROVIDERS)
        raise ModelError(ModelErrorKind.CONFIGURATION, f"unknown model provider {provider!r}{hint}; known: {known}")
    address = base_url or environ.get(spec.base_url_variable) or spec.base_url
    key = api_key or next((environ[name] for name in spec.keys if environ.get(name)), "")
    if spec.keys and not key:
        raise ModelError(ModelErrorKind.CONFIGURATION, f"{provider}: no API key; set {' or '.join(spec.keys)}")
    try:
        module = importlib.import_module(f"toolreeve.agent.providers.{spec.module}")
    except ModuleNotFoundError as missing:
        message = f"{provider} needs the package {missing.name!r}: pip install 'toolreeve[agent]'"
        raise ModelError(ModelErrorKind.CONFIGURATION, message) from None
    found: ModelProvider = module.connect(provider, api_key=key or "none", base_url=address, timeout=timeout)
    return found
