"""The documented examples of agents, tools and permissions, as they are written but for the package's name."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.world import World
from toolreeve import (
    TOOL_DANGER_LEVELS,
    BaseAgent,
    BaseAgentConfig,
    DangerLevel,
    ExecutionContext,
    InputField,
    OutputField,
    PermissionMode,
    PermissionPolicy,
    Signature,
    convert_mcp_to_openai_tools,
    get_tool_danger_level,
    is_tool_safe,
    mcp_tool,
    requires_approval,
)

BUILTIN = {"name": "toolreeve_builtin", "transport": {"type": "builtin"}}


class MySignature(Signature):
    question: str = InputField(description="User question")
    answer: str = OutputField(description="Answer")


CONFIG = BaseAgentConfig(llm_provider="openai", model="gpt-4", temperature=0.7)


def agent_in(world: World, **options: Any) -> BaseAgent:
    return BaseAgent(config=CONFIG, signature=MySignature(), settings=world.settings(), **options)


def bypassing() -> PermissionPolicy:
    return PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))


async def test_tools_of_the_builtin_server_run_without_approval_in_bypass_mode(world: World) -> None:
    source, target = world.workspace / "in.txt", world.workspace / "out.txt"
    source.write_text("content of the file")
    async with agent_in(world, mcp_servers=[BUILTIN], permission_policy=bypassing()) as agent:
        read = await agent.execute_mcp_tool("mcp__toolreeve_builtin__read_file", {"path": str(source)})
        written = await agent.execute_mcp_tool(
            "mcp__toolreeve_builtin__write_file", {"path": str(target), "content": "Hello World"}
        )
        listed = await agent.execute_mcp_tool("mcp__toolreeve_builtin__list_directory", {"path": str(world.workspace)})
        exists = await agent.execute_mcp_tool("mcp__toolreeve_builtin__file_exists", {"path": str(target)})
        command = await agent.execute_mcp_tool("mcp__toolreeve_builtin__bash_command", {"command": "ls -la"})
        deleted = await agent.execute_mcp_tool("mcp__toolreeve_builtin__delete_file", {"path": str(target)})

    assert read["success"] is True
    assert "content" in read["output"]
    assert written["success"] is True
    assert listed["output"] == ["in.txt", "out.txt"]
    assert exists["output"] == "true"
    assert "out.txt" in command["stdout"]
    assert command["exit_code"] == 0
    assert deleted["deleted"] is True


async def test_all_fields_are_in_every_result(world: World) -> None:
    async with agent_in(world) as agent:
        result = await agent.execute_mcp_tool("read_file", {"path": "nothing.txt"})

    fields = "success output stdout stderr exit_code content error isError structured_content".split()
    assert [field for field in fields if field not in result] == []
    assert result["isError"] is True


async def test_a_safe_tool_runs_and_a_medium_one_names_what_is_missing(world: World) -> None:
    (world.workspace / "data.txt").write_text("x")
    async with agent_in(world) as agent:
        result = await agent.execute_mcp_tool("mcp__toolreeve_builtin__read_file", {"path": "data.txt"})
        with pytest.raises(PermissionError, match=r"Tool 'write_file' \(danger=medium\) requires approval"):
            await agent.execute_mcp_tool(
                "mcp__toolreeve_builtin__write_file", {"path": "output.txt", "content": "data"}
            )

    assert result["success"]


async def test_malformed_names_and_unknown_servers_are_value_errors(world: World) -> None:
    async with agent_in(world) as agent:
        with pytest.raises(ValueError, match="mcp__server__tool"):
            await agent.execute_mcp_tool("mcp__", {})
        with pytest.raises(ValueError, match="nowhere"):
            await agent.execute_mcp_tool("mcp__nowhere__read_file", {})


async def test_the_builtin_server_has_twelve_tools(world: World) -> None:
    async with agent_in(world) as agent:
        tools = await agent.discover_mcp_tools(server_name="toolreeve_builtin")
        files = await agent.discover_mcp_tools(server_name="toolreeve_builtin", category="file")

    assert len(tools) == 12
    assert "mcp__toolreeve_builtin__read_file" in {tool["name"] for tool in files}
    assert len(files) < len(tools)


def test_the_server_is_importable_with_its_tools() -> None:
    from toolreeve.builtin_server import server

    assert server.name == "toolreeve_builtin"
    assert len(server._tool_registry) == 12
    assert server._tool_registry["bash_command"].name == "bash"


async def test_a_chain_passes_results_on(world: World) -> None:
    (world.workspace / "input.txt").write_text("passed on")
    async with agent_in(world, permission_policy=bypassing()) as agent:
        results = await agent.execute_tool_chain(
            [
                {"tool_name": "read_file", "params": {"path": "input.txt"}},
                {"tool_name": "write_file", "params": {"path": "output.txt", "content": "{{previous.content}}"}},
            ]
        )

    assert results[0]["content"] == "passed on"
    assert (world.workspace / "output.txt").read_text() == "passed on"


def test_the_workflow_shows_what_the_model_is_given(world: World) -> None:
    with agent_in(world, mcp_servers=[BUILTIN]) as agent:
        assert agent.workflow_generator.agent is agent
        workflow = agent.workflow_generator.generate_signature_workflow()
        node = workflow.build().nodes["agent_exec"]

    assert "tools" in node.config
    assert len(node.config["tools"]) > 0


def test_mcp_tools_become_functions() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "File path"}},
        "required": ["path"],
    }
    tool = {"name": "mcp__filesystem__read_file", "description": "Read a file", "inputSchema": schema}

    converted = convert_mcp_to_openai_tools([tool])

    assert converted[0]["type"] == "function"
    assert converted[0]["function"]["parameters"] == schema


def test_danger_levels_by_name() -> None:
    assert get_tool_danger_level("bash_command") is DangerLevel.HIGH
    assert is_tool_safe("read_file")
    assert requires_approval("write_file", DangerLevel.MEDIUM)
    assert TOOL_DANGER_LEVELS["http_post"] is DangerLevel.MEDIUM


def test_a_program_adds_danger_levels_of_its_own() -> None:
    TOOL_DANGER_LEVELS["custom_database_query"] = DangerLevel.MEDIUM
    TOOL_DANGER_LEVELS.update({"safe_analytics_query": DangerLevel.SAFE, "schema_migration": DangerLevel.HIGH})
    try:
        assert get_tool_danger_level("custom_database_query") is DangerLevel.MEDIUM
        assert not requires_approval("safe_analytics_query")
        assert PermissionPolicy().check_permission("safe_analytics_query", {}) == (True, None)
        assert PermissionPolicy().check_permission("schema_migration", {}) == (None, None)
        with pytest.raises(ValueError, match="rule"):
            TOOL_DANGER_LEVELS["bash_command"] = DangerLevel.SAFE
    finally:
        for name in ("custom_database_query", "safe_analytics_query", "schema_migration"):
            del TOOL_DANGER_LEVELS[name]
    with pytest.raises(ValueError, match="unknown tool"):
        get_tool_danger_level("custom_database_query")


def test_the_documented_decisions() -> None:
    bypass = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
    assert bypass.check_permission("bash_command", {"command": "ls"}, 0.0) == (True, None)
    plan = PermissionPolicy(ExecutionContext(mode=PermissionMode.PLAN))
    assert plan.check_permission("Read", {"path": "/data/file.txt"}, 0.0) == (True, None)
    assert plan.check_permission("Write", {"path": "/data/file.txt"}, 0.0) == (
        False,
        "Plan mode: Only read-only tools allowed",
    )
    context = ExecutionContext(budget_limit=10.0)
    context.budget_used = 9.5
    assert PermissionPolicy(context).check_permission("expensive_tool", {}, 1.0) == (
        False,
        "Budget exceeded: $9.50 spent, $0.50 remaining, tool needs $1.00",
    )
    denying = PermissionPolicy(ExecutionContext(denied_tools={"bash_command"}))
    assert denying.check_permission("bash_command", {}, 0.0) == (
        False,
        "Tool 'bash_command' is explicitly disallowed",
    )
    allowing = PermissionPolicy(ExecutionContext(allowed_tools={"bash_command"}))
    assert allowing.check_permission("bash_command", {}, 0.0) == (True, None)


async def test_a_custom_tool_returns_its_own_fields(world: World) -> None:
    @mcp_tool(
        name="custom_database_query",
        description="Execute database query",
        danger_level=DangerLevel.SAFE,
        parameters={
            "query": {"type": "string", "description": "SQL query to execute"},
            "database": {"type": "string", "description": "Database name"},
        },
    )
    async def custom_database_query(query: str, database: str) -> dict[str, Any]:
        return {"success": True, "output": f"{query} on {database}", "error": ""}

    async with agent_in(world, tools=[custom_database_query]) as agent:
        result = await agent.execute_mcp_tool("custom_database_query", {"query": "SELECT 1", "database": "production"})

    assert result["output"] == "SELECT 1 on production"


def test_documented_server_configuration_is_accepted(world: World, tmp_path: Path) -> None:
    server = {"name": "my_custom_server", "command": "python", "args": ["-m", "my_mcp_server"], "transport": "stdio"}

    with BaseAgent(config=CONFIG, signature=MySignature(), mcp_servers=[server], settings=world.settings()) as agent:
        assert json.dumps(agent.declared_tools()) == "[]"
