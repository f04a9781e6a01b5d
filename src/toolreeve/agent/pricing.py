"""Prices of model turns, from the offline data of genai-prices."""

from toolreeve.agent.messages import TokenUsage

_PROVIDER_IDS = {"openai": "openai", "openai_responses": "openai", "anthropic": "anthropic", "gemini": "google"}


def price(provider: str, model: str, usage: TokenUsage) -> float | None:
    """Dollars; None for a model without a known price. Ollama's models run on the user's own machine and are free."""
    if provider == "ollama":
        return 0.0
    try:
        import genai_prices
    except ModuleNotFoundError:
        return None
    tokens = genai_prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    try:
        return float(genai_prices.calc_price(tokens, model, provider_id=_PROVIDER_IDS.get(provider)).total_price)
    except LookupError:
        return None
