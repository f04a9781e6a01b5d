"""Configuration of an agent: provider, model and limits."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from toolreeve.agent.loop import RunLimits
from toolreeve.core.errors import ToolreeveError


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAgentConfig:
    """`llm_provider` is openai, openai_responses, anthropic, gemini or ollama. Any server that speaks OpenAI's format
    is `openai` with a `base_url`. Without `api_key`, the provider's own environment variable is read. `temperature` is
    sent only if it is set: some models refuse it. `budget_limit` is in dollars, for one run. With `phases`, the model
    specifies and plans before it acts, and the runtime runs the project's checks afterwards."""

    llm_provider: str = "openai"
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    base_url: str | None = None
    api_key: str | None = dataclasses.field(default=None, repr=False)
    system_prompt: str = ""
    max_steps: int = 50
    max_seconds: float = 1800.0
    budget_limit: float | None = None
    context_tokens: int = 128_000
    request_timeout: float = 600.0
    phases: bool = False

    def __post_init__(self) -> None:
        if not self.model:
            raise ToolreeveError('no model: BaseAgentConfig(llm_provider="openai", model="gpt-5")')
        if self.max_steps < 1:
            raise ToolreeveError(f"max_steps={self.max_steps}: an agent takes at least one step")

    @classmethod
    def parse(cls, model: str, **options: Any) -> Self:
        """From `provider:model`, as the command line writes it."""
        provider, separator, name = model.partition(":")
        if not separator or not name:
            raise ToolreeveError(f"{model!r} names no model: write provider:model, such as anthropic:claude-sonnet-5")
        return cls(llm_provider=provider, model=name, **options)

    @classmethod
    def of(cls, config: "BaseAgentConfig | Mapping[str, Any]") -> "BaseAgentConfig":
        """A configuration given as a mapping has the same keys."""
        if isinstance(config, BaseAgentConfig):
            return config
        try:
            return cls(**config)
        except TypeError as problem:
            raise ToolreeveError(f"config: {problem}") from None

    @property
    def limits(self) -> RunLimits:
        """The bounds of one run."""
        return RunLimits(
            steps=self.max_steps,
            seconds=self.max_seconds,
            cost=self.budget_limit,
            context_tokens=self.context_tokens,
        )
