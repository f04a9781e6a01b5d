"""The catalogue against a server that lists models as the providers do."""

from pathlib import Path

import pytest

from toolreeve import Toolreeve
from toolreeve.runtime.model_catalogue import ConfiguredModels
from toolreeve.testing import ScriptedModel


async def test_every_configured_provider_is_asked() -> None:
    with ScriptedModel([]) as model:
        environ = {
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": model.base_url("openai"),
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": model.base_url("anthropic"),
            "GOOGLE_API_KEY": "k",
            "GEMINI_BASE_URL": model.base_url("gemini"),
            "OLLAMA_BASE_URL": model.base_url("ollama"),
        }
        listing = await ConfiguredModels(environ).list()

    assert listing.problems == {}
    assert list(listing.models) == ["openai", "anthropic", "gemini", "ollama"]
    assert all("llama3.2:3b" in models for models in listing.models.values())


async def test_a_provider_that_fails_does_not_stop_the_others() -> None:
    with ScriptedModel([]) as model:
        environ = {
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": "http://127.0.0.1:9",
            "OLLAMA_BASE_URL": model.base_url("ollama"),
        }
        listing = await ConfiguredModels(environ).list()

    assert list(listing.models) == ["ollama"]
    assert list(listing.problems) == ["openai"]


async def test_without_keys_nobody_is_asked() -> None:
    listing = await ConfiguredModels({"OPENAI_BASE_URL": "http://127.0.0.1:9"}).list()

    assert (listing.models, listing.problems) == ({}, {})


async def test_the_tool_groups_what_the_providers_offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ScriptedModel([]) as model:
        monkeypatch.setenv("OLLAMA_BASE_URL", model.base_url("ollama"))
        async with Toolreeve(workspace=tmp_path) as reeve:
            result = await reeve.call("list_llm_models")

    assert result.unwrap() == {
        "general": ["llama3.2:3b", "scripted"],
        "code": ["deepseek-coder:6.7b"],
        "vision": ["llava:7b"],
        "embedding": ["bge-m3:latest"],
        "cloud": [],
    }
