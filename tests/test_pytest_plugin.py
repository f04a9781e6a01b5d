"""The plugin as a user's test suite loads it, in a pytest of its own."""

import subprocess
import sys
from pathlib import Path

SUITE = """
from toolreeve import BaseAgent, BaseAgentConfig
from toolreeve.testing import call, say
from toolreeve.pytest_plugin import assert_called
import pytest

def test_reeve_approves_and_is_recorded(reeve, approve_all):
    assert reeve.call("write_file", path="a", content="b").success
    assert [request.tool for request in approve_all.requests] == ["write_file"]
    assert_called(reeve, "write_file", times=1)
    with pytest.raises(AssertionError, match="was not called"):
        assert_called(reeve, "delete_file")

def test_denials(new_reeve, deny_all):
    result = new_reeve(approve=deny_all).call("write_file", path="a", content="b")
    assert result.error.code == "E_APPROVAL_DENIED"

def test_an_agent(fake_model, reeve):
    model = fake_model(call("calculate", expression="6*7"), say("42"))
    config = BaseAgentConfig(llm_provider="openai", model="m", base_url=model.base_url("openai"), api_key="k")
    with BaseAgent(config, settings=reeve.configuration) as agent:
        assert agent.run(task="6*7?") == {"answer": "42"}
    assert_called(reeve, "calculate")
"""


def test_a_suite_uses_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["toolreeve.pytest_plugin"]\n')
    (tmp_path / "test_suite.py").write_text(SUITE)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )

    assert "3 passed" in done.stdout, done.stdout + done.stderr
