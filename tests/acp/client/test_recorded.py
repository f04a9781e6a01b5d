"""What nine real agents sent, as recorded by `make agents`: every question is read as the call that followed."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolreeve.acp.client.permission_calls import read_calls
from toolreeve.acp.client.profiles import PROFILES
from toolreeve.acp.client.turn import AgentTurn
from toolreeve.approval.options import choose_option, read_option

RECORDED = Path(__file__).parents[1] / "recorded"
WRITE = ("write_file", "/project/hello.txt")
RUN = ("bash", "touch made")
ASKED: dict[str, list[tuple[str, str]]] = {
    "claude": [WRITE, RUN],
    "codex": [WRITE, RUN],
    "fast-agent": [WRITE, RUN],
    "gemini": [WRITE, RUN],
    "goose": [WRITE, RUN],
    "hermes": [WRITE, ("bash", "rm -rf none; touch made")],
    "opencode": [WRITE, RUN],
    "qwen": [WRITE, RUN],
    "vibe": [WRITE, RUN],
}
SERVED: dict[str, list[str]] = {
    "fast-agent": ["fs/write_text_file", "terminal/create"],
    "gemini": ["fs/write_text_file"],
    "goose": ["fs/write_text_file", "terminal/create"],
    "opencode": ["fs/write_text_file"],
    "qwen": ["fs/write_text_file"],
}


def frames(agent: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / f"{agent}-allowed.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("agent", sorted(PROFILES.keys() - {"generic"}))
def test_every_question_of_an_agent_is_read_as_what_it_does(agent: str) -> None:
    turn = AgentTurn()
    asked: list[set[tuple[str, str]]] = []
    for frame in frames(agent):
        params = frame["params"]
        if frame["method"] == "session/update":
            turn.apply(params["update"])
        elif frame["method"] == "session/request_permission":
            calls = read_calls(turn.merge_call(params["toolCall"]), PROFILES[agent], cwd="/project")
            asked.append({(each.tool, each.args.get("command", each.args.get("path"))) for each in calls})

    assert asked == [{each} for each in ASKED[agent]]


@pytest.mark.parametrize("agent", sorted(PROFILES.keys() - {"generic"}))
def test_every_question_can_be_answered_for_once_and_refused(agent: str) -> None:
    offered = [
        [read_option(each) for each in frame["params"]["options"]]
        for frame in frames(agent)
        if frame["method"] == "session/request_permission"
    ]
    for options in offered:
        allowed, refused = (choose_option(options, granted=granted) for granted in (True, False))
        assert allowed not in (None, refused)
        assert refused is not None


def test_profiles_name_what_agents_do_through_us() -> None:
    """An agent that does all of it through us sees a read-only workspace."""
    acts = ("fs/write_text_file", "terminal/create")
    found = {agent: [each["method"] for each in frames(agent) if each["method"] in acts] for agent in ASKED}

    assert {agent: methods for agent, methods in found.items() if methods} == SERVED
    routed = {agent for agent, profile in PROFILES.items() if {"write", "shell"} <= profile.routes}
    assert routed == {agent for agent, methods in SERVED.items() if set(methods) == set(acts)}
