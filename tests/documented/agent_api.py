"""The documented examples of agents, danger levels, approvals and permissions."""

import sys
from typing import Any

import pytest

from tests.agent.test_base_agent import protocol_with
from tests.documented.stage import BUILTIN, Question, Stage, example
from toolreeve import (
    TOOL_DANGER_LEVELS,
    ApprovalManager,
    BaseAgent,
    BaseAgentConfig,
    DangerLevel,
    ExecutionContext,
    PermissionMode,
    PermissionPolicy,
    convert_mcp_to_openai_tools,
    get_tool_danger_level,
    get_tools_for_provider,
    is_tool_safe,
    mcp_tool,
    requires_approval,
)
from toolreeve.testing import ScriptedModel, call, say

FIELDS = "success output stdout stderr exit_code content error isError structured_content".split()
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "File path"}},
    "required": ["path"],
}
MCP_TOOL = {"name": "mcp__filesystem__read_file", "description": "Read a file", "inputSchema": SCHEMA}
SYSTEM_INFO = {"command": sys.executable, "args": ["-m", "toolreeve.system_info"], "transport": "stdio"}


@example("agent: a safe tool runs by its long name")
async def safe(stage: Stage) -> None:
    (stage.place / "test.txt").write_text("contents")
    async with stage.agent(mcp_servers=[BUILTIN]) as agent:
        result = await agent.execute_mcp_tool("mcp__toolreeve_builtin__read_file", {"path": "test.txt"})
    assert result["output"] == "contents"


@example("agent: a result has the nine documented fields")
async def fields(stage: Stage) -> None:
    result = await stage.execute("mcp__toolreeve_builtin__bash_command", {"command": "echo hi"})
    assert [name for name in FIELDS if name not in result] == []
    assert (result["success"], result["stdout"], result["exit_code"], result["isError"]) == (True, "hi\n", 0, False)


@example("agent: a malformed name and an unknown server are ValueErrors")
async def malformed(stage: Stage) -> None:
    async with stage.agent() as agent:
        with pytest.raises(ValueError, match="mcp__server__tool"):
            await agent.execute_mcp_tool("mcp__", {})
        with pytest.raises(ValueError, match="nowhere"):
            await agent.execute_mcp_tool("mcp__nowhere__read_file", {})


@example("agent: tools of a server are discovered and used by the model")
async def discovered(stage: Stage) -> None:
    with ScriptedModel([call("machine__system_info"), say("It is Linux.")]) as model:
        config = BaseAgentConfig(llm_provider="ollama", model="scripted", base_url=model.base_url("ollama"))
        servers = [{"name": "machine", "trust": True, **SYSTEM_INFO}]
        policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
        options: dict[str, Any] = {"settings": stage.settings, "permission_policy": policy, "mcp_servers": servers}
        async with BaseAgent(config=config, signature=Question(), **options) as agent:
            names = {tool["name"] for tool in await agent.discover_mcp_tools(server_name="machine")}
            result = await agent.run_async(question="Which system is it?")
    assert "mcp__machine__system_info" in names
    assert result["answer"] == "It is Linux."


@example("agent: an MCP tool in OpenAI's format")
async def openai_format(_: Stage) -> None:
    function = {"name": MCP_TOOL["name"], "description": MCP_TOOL["description"], "parameters": SCHEMA}
    assert convert_mcp_to_openai_tools([MCP_TOOL]) == [{"type": "function", "function": function}]


@example("agent: an MCP tool in Anthropic's format")
async def anthropic_format(_: Stage) -> None:
    [tool] = get_tools_for_provider([MCP_TOOL], "anthropic")
    assert (tool["name"], tool["input_schema"]) == (MCP_TOOL["name"], SCHEMA)


@example("agent: tools for a provider")
async def provider_format(_: Stage) -> None:
    assert get_tools_for_provider([MCP_TOOL], "ollama") == convert_mcp_to_openai_tools([MCP_TOOL])


@example("agent: discovery inside a running event loop")
async def inside_a_loop(stage: Stage) -> None:
    async with stage.agent(mcp_servers=[BUILTIN]) as agent:
        assert len(await agent.discover_mcp_tools()) >= 12


@example("agent: the workflow shows the tools of the model")
async def workflow(stage: Stage) -> None:
    async with stage.agent(mcp_servers=[BUILTIN]) as agent:
        assert agent.workflow_generator.agent is agent
        node = agent.workflow_generator.generate_signature_workflow().build().nodes["agent_exec"]
    assert len(node.config["tools"]) > 0


@example("danger: the levels and their words")
async def levels(_: Stage) -> None:
    assert [level.value for level in DangerLevel] == ["safe", "low", "medium", "high", "critical"]


@example("danger: the levels of the twelve tools")
async def twelve(_: Stage) -> None:
    safe = "read_file file_exists list_directory fetch_url extract_links http_get".split()
    medium = "write_file http_post http_put".split()
    high = "delete_file http_delete bash_command".split()
    for names, level in ((safe, DangerLevel.SAFE), (medium, DangerLevel.MEDIUM), (high, DangerLevel.HIGH)):
        assert {name: TOOL_DANGER_LEVELS[name] for name in names} == dict.fromkeys(names, level)


@example("danger: questions about a tool by its name")
async def by_name(_: Stage) -> None:
    assert get_tool_danger_level("bash_command") is DangerLevel.HIGH
    assert is_tool_safe("read_file")
    assert requires_approval("write_file", DangerLevel.MEDIUM)
    with pytest.raises(ValueError, match="unknown tool"):
        get_tool_danger_level("no_such_tool")


@example("danger: levels for tools of a program")
async def own_levels(_: Stage) -> None:
    TOOL_DANGER_LEVELS["custom_database_query"] = DangerLevel.MEDIUM
    TOOL_DANGER_LEVELS.update({"data_export": DangerLevel.MEDIUM, "production_deployment": DangerLevel.CRITICAL})
    try:
        assert get_tool_danger_level("production_deployment") is DangerLevel.CRITICAL
        assert PermissionPolicy().check_permission("data_export", {}) == (None, None)
        with pytest.raises(ValueError, match="rule"):
            TOOL_DANGER_LEVELS["bash_command"] = DangerLevel.SAFE
    finally:
        for name in ("custom_database_query", "data_export", "production_deployment"):
            del TOOL_DANGER_LEVELS[name]


@example("approval: the manager asks, and a yes is True")
async def manager(_: Stage) -> None:
    context = ExecutionContext()
    assert await ApprovalManager(lambda _: True).request_approval("write_file", {"path": "a"}, context) is True
    assert await ApprovalManager(lambda _: False).request_approval("write_file", {"path": "a"}, context) is False


@example("approval: over the control protocol")
async def over_the_protocol(stage: Stage) -> None:
    async for protocol, person in protocol_with({"approved": True, "action": "once"}):
        async with stage.agent(mcp_servers=[BUILTIN], control_protocol=protocol) as agent:
            name = "mcp__toolreeve_builtin__write_file"
            assert (await agent.execute_mcp_tool(name, {"path": "output.txt", "content": "Data"}))["success"]
        assert person.asked[0]["data"]["tool_name"] == "write_file"


@example("approval: bypassed for a test")
async def bypassed(stage: Stage) -> None:
    result = await stage.execute("mcp__toolreeve_builtin__write_file", {"path": "a.txt", "content": "Test"})
    assert result["success"] is True


@example("permission: bypass allows")
async def bypass(_: Stage) -> None:
    policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
    assert policy.check_permission("bash_command", {"command": "ls"}, 0.0) == (True, None)


@example("permission: plan mode only reads")
async def plan(_: Stage) -> None:
    policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.PLAN))
    assert policy.check_permission("Read", {"path": "/data/file.txt"}, 0.0) == (True, None)
    denied = (False, "Plan mode: Only read-only tools allowed")
    assert policy.check_permission("Write", {"path": "/data/file.txt"}, 0.0) == denied


@example("permission: a budget is enforced")
async def budget(_: Stage) -> None:
    context = ExecutionContext(budget_limit=10.0)
    context.budget_used = 9.5
    reason = "Budget exceeded: $9.50 spent, $0.50 remaining, tool needs $1.00"
    assert PermissionPolicy(context).check_permission("expensive_tool", {}, 1.0) == (False, reason)


@example("permission: a denied tool")
async def denied(_: Stage) -> None:
    policy = PermissionPolicy(ExecutionContext(denied_tools={"bash_command"}))
    assert policy.check_permission("bash_command", {}, 0.0) == (False, "Tool 'bash_command' is explicitly disallowed")


@example("permission: an allowed tool")
async def allowed(_: Stage) -> None:
    policy = PermissionPolicy(ExecutionContext(allowed_tools={"bash_command"}))
    assert policy.check_permission("bash_command", {}, 0.0) == (True, None)


@example("custom: a decorated tool")
async def custom_tool(stage: Stage) -> None:
    @mcp_tool(
        name="custom_database_query",
        description="Execute database query",
        danger_level=DangerLevel.MEDIUM,
        parameters={"query": {"type": "string", "description": "SQL"}, "database": {"type": "string"}},
    )
    async def custom_database_query(query: str, database: str) -> dict[str, Any]:
        return {"success": True, "output": f"{query} on {database}", "error": ""}

    async with stage.trusted(tools=[custom_database_query]) as agent:
        params = {"query": "SELECT 1", "database": "production"}
        assert (await agent.execute_mcp_tool("custom_database_query", params))["output"] == "SELECT 1 on production"


@example("custom: a server beside the builtin one, and its tool")
async def custom_server(stage: Stage) -> None:
    transport = {"type": "stdio", "command": SYSTEM_INFO["command"], "args": SYSTEM_INFO["args"]}
    async with stage.trusted(mcp_servers=[BUILTIN, {"name": "custom_server", "transport": transport}]) as agent:
        result = await agent.execute_mcp_tool("mcp__custom_server__system_info", {})
    assert result["success"], result


@example("custom: two parameters that are text")
async def my_tool(stage: Stage) -> None:
    @mcp_tool(name="my_tool", description="Tool description", parameters={"param1": {"type": "string"}})
    async def my_tool(param1: str) -> dict[str, Any]:
        return {"result": f"Processed {param1}"}

    async with stage.trusted(tools=[my_tool]) as agent:
        assert (await agent.execute_mcp_tool("my_tool", {"param1": "x"}))["result"] == "Processed x"


@example("tool protocol: any object with a name, a schema and execute")
async def protocol_tool(stage: Stage) -> None:
    class MyTool:
        name = "my_tool"
        description = "Does something useful."
        input_schema = {"type": "object", "properties": {"param": {"type": "string"}}, "required": ["param"]}  # noqa: RUF012

        async def execute(self, tool_input: dict[str, Any]) -> str:
            return f"Result for {tool_input['param']}"

    async with stage.reeve(tools=[MyTool()]) as reeve:
        assert (await reeve.call("my_tool", param="p")).output == "Result for p"


@example("tool protocol: the system information server")
async def system_info(stage: Stage) -> None:
    async with stage.trusted(mcp_servers=[{"name": "system-info", **SYSTEM_INFO}]) as agent:
        names = {tool["name"].rpartition("__")[2] for tool in await agent.discover_mcp_tools(server_name="system-info")}
    assert names == {"system_info", "disk_info", "network_info"}
