import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.network import Answer, web_server
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.config import Configuration, Network, Policy, Quality, from_settings
from toolreeve.runtime.builtin import TOOLS
from toolreeve.tools.output_schemas import OUTPUT_SCHEMAS

QUALITY = Quality(
    tests=("echo 1",), lint=("echo 1",), format_check=("echo 1",), typecheck=("echo 1",), build=("echo 1",)
)
CALLS: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "file_exists": {"path": "none"},
    "list_directory": {"recursive": True},
    "search_files": {"pattern": "*.txt"},
    "search_text": {"pattern": "one"},
    "search_directory": {"name": "sub"},
    "write_file": {"path": "b.txt", "content": "b"},
    "edit_file": {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]},
    "delete_file": {"path": "never.txt"},
    "move_file": {"source": "c.txt", "destination": "d.txt"},
    "undo": {"session": "{session}"},
    "http_get": {"url": "{url}"},
    "http_post": {"url": "{url}", "data": {"a": 1}},
    "http_put": {"url": "{url}", "data": "x"},
    "http_delete": {"url": "{url}"},
    "http_request": {"url": "{url}"},
    "fetch_url": {"url": "{url}"},
    "extract_links": {"html": '<a href="/x">x</a>', "base_url": "{url}"},
    "get_system_info": {},
    "get_datetime": {},
    "list_llm_models": {},
    "get_audit_log": {},
    "read_output": {"call_id": "{cut}"},
    "calculate": {"expression": "1 / 3"},
    "bash": {"command": "echo hi"},
    "execute_command": {"command": "ls"},
    "git_status": {},
    "git_diff": {},
    "run_tests": {},
    "run_lint": {},
    "run_format": {},
    "run_typecheck": {},
    "run_build": {},
}


@pytest.fixture
def workspace(world: World) -> Path:
    place = world.workspace
    (place / "sub").mkdir()
    (place / "a.txt").write_text("one\n")
    (place / "c.txt").write_text("three\n")
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    return place


def configured(world: World, host: str) -> Configuration:
    policy = Policy(allowed_tools=("*",))
    return from_settings(world.settings(policy=policy, network=Network(allow=(host,)), quality=QUALITY))


def filled(args: Mapping[str, Any], **values: str) -> dict[str, Any]:
    return {name: value.format(**values) if isinstance(value, str) else value for name, value in args.items()}


async def test_what_every_builtin_tool_answers_fits_what_it_declares(world: World, workspace: Path) -> None:
    async with web_server(lambda _: Answer(body=b"{}")) as web:
        configuration = configured(world, f"127.0.0.1:{web.port}")
        async with Toolreeve(settings=configuration) as reeve:
            long = await reeve.call("bash", command="seq 1 20000")
            long.to_mcp()
            values = {"url": web.url("/"), "session": reeve.session, "cut": long.meta.call_id}
            for name, args in CALLS.items():
                result = await reeve.call(name, filled(args, **values))

                assert result.success, f"{name}: {result.to_text()}"
                structured = result.to_mcp()["structuredContent"]
                problems = [
                    str(each)
                    for each in jsonschema_rs.validator_for(dict(OUTPUT_SCHEMAS[name])).iter_errors(structured)
                ]
                assert (name, problems) == (name, [])


def test_every_builtin_tool_declares_its_answer_and_is_tried_here() -> None:
    assert {each.name for each in TOOLS} == set(OUTPUT_SCHEMAS) == set(CALLS)
