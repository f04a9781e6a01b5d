"""Model providers: their keys, addresses and model lists."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProviderSpec:
    """`keys` are environment variables; a provider without any needs no key. `auth` is the header that carries the key,
    with its prefix."""

    keys: tuple[str, ...]
    base_url_variable: str
    base_url: str
    auth: tuple[str, str] = ("authorization", "Bearer ")
    headers: tuple[tuple[str, str], ...] = ()

    def key(self, environ: Mapping[str, str]) -> str:
        """Empty if there is none."""
        return next((environ[name] for name in self.keys if environ.get(name)), "")

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.base_url_variable) or self.base_url

    def is_configured(self, environ: Mapping[str, str]) -> bool:
        """By its key; a provider without keys, by its address."""
        return bool(self.key(environ)) if self.keys else self.base_url_variable in environ


_OPENAI = ModelProviderSpec(
    keys=("OPENAI_API_KEY",), base_url_variable="OPENAI_BASE_URL", base_url="https://api.openai.com/v1"
)
MODEL_PROVIDERS: Mapping[str, ModelProviderSpec] = {
    "openai": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic": ModelProviderSpec(
        keys=("ANTHROPIC_API_KEY",),
        base_url_variable="ANTHROPIC_BASE_URL",
        base_url="https://api.anthropic.com",
        auth=("x-api-key", ""),
        headers=(("anthropic-version", "2023-06-01"),),
    ),
    "gemini": ModelProviderSpec(
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        base_url_variable="GEMINI_BASE_URL",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        auth=("x-goog-api-key", ""),
    ),
    "ollama": ModelProviderSpec(keys=(), base_url_variable="OLLAMA_BASE_URL", base_url="http://127.0.0.1:11434/v1"),
}


def configured_providers(environ: Mapping[str, str]) -> Mapping[str, ModelProviderSpec]:
    """Each service once."""
    return {
        name: spec
        for name, spec in MODEL_PROVIDERS.items()
        if name != "openai_responses" and spec.is_configured(environ)
    }
