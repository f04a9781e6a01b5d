"""The [agent] table: the model and the limits of Toolreeve's own agent."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The agent of `toolreeve agent`."""

    model: Annotated[
        str,
        Field(
            "The model, as provider:model, such as anthropic:claude-sonnet-5 or ollama:llama3.2. Providers are openai, "
            "openai_responses, anthropic, gemini and ollama.",
            ProjectScope.NEVER,
        ),
    ] = ""
    base_url: Annotated[
        str,
        Field("The address of the provider's API, if it is not the usual one.", ProjectScope.NEVER),
    ] = ""
    max_steps: Annotated[
        int,
        Field("Maximum number of turns of the model in one run.", ProjectScope.LOWER, at_least=1),
    ] = 50
    max_seconds: Annotated[
        float,
        Field("Maximum duration of one run in seconds.", ProjectScope.LOWER, above=0),
    ] = 1800.0
    context_tokens: Annotated[
        int,
        Field(
            "Tokens that the model's context holds. Old tool results are shortened before it is full.",
            ProjectScope.NEVER,
            at_least=1000,
        ),
    ] = 128_000
