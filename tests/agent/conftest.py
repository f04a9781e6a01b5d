"""Agents in a world of their own, with a scripted model behind each provider's real client."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.world import World
from toolreeve.agent.base_agent import BaseAgent
from toolreeve.agent.config import BaseAgentConfig
from toolreeve.testing import ScriptedModel, Turn

PROVIDERS = ("openai", "openai_responses", "anthropic", "gemini", "ollama")
NewAgent = Callable[..., tuple[BaseAgent, ScriptedModel]]


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new_agent(world: World) -> Iterator[NewAgent]:
    """An agent and its model, by the turns of its script."""
    with ExitStack() as stack:

        def build(*turns: Turn, provider: str = "openai", config: Any = None, **options: Any) -> Any:
            model = stack.enter_context(ScriptedModel(turns))
            settings = BaseAgentConfig(
                llm_provider=provider,
                model=(config or {}).pop("model", "scripted"),
                api_key="key",
                base_url=model.base_url(provider),
                **(config or {}),
            )
            options.setdefault("settings", world.settings())
            agent = stack.enter_context(BaseAgent(settings, **options))
            return agent, model

        yield build
