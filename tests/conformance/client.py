"""The program that the conformance suite starts as a client: the runtime, with the suite's own server configured.

`MCP_CONFORMANCE_SCENARIO` names what is tested, the last argument is the server's URL. A person is played: whoever is
sent to log in follows the link, and whoever is asked a question accepts what the form suggests.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx2

from tests.upstream.callers import ScriptedCaller
from toolreeve import Toolreeve
from toolreeve.config import Network, Settings, State, Workspace
from toolreeve.core.call import ToolCall, new_id
from toolreeve.core.mcp import Era
from toolreeve.core.result import ToolResult
from toolreeve.upstream.tools.names import relay_name

SERVER = "suite"
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
PLACEHOLDERS = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}

Scenario = Callable[[Toolreeve, Mapping[str, Any]], Awaitable[None]]


async def follow(url: str) -> None:
    """What a browser does with somebody who agrees to everything."""
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        await browser.get(url)


async def accept(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    if method != "elicitation/create":
        return {"roots": []}
    fields = params.get("requestedSchema", {}).get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    content |= {name: True for name, field in fields.items() if field.get("type") == "boolean" and name not in content}
    return {"action": "accept", "content": content}


async def call(reeve: Toolreeve, tool: str, args: Mapping[str, Any]) -> ToolResult:
    """Call as a client of the era that is tested, which answers what the server asks back."""
    modern = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") == Era.MODERN
    person = ScriptedCaller(era=Era.MODERN if modern else Era.LEGACY, capabilities=CAPABILITIES, answer=accept)
    request = ToolCall(tool=tool, args=dict(args), principal=reeve.principal, session=reeve.session, peer=person)
    result = await reeve.run(request)
    while (asked := result.to_mcp()).get("resultType") == "input_required":
        questions = asked.get("inputRequests") or {}
        person.responses = {name: await accept(each["method"], each["params"]) for name, each in questions.items()}
        person.state = asked.get("requestState")
        result = await reeve.run(replace(request, id=new_id()))
    print(tool, result.to_mcp(), file=sys.stderr)
    return result


async def call_everything(reeve: Toolreeve, _: Mapping[str, Any]) -> None:
    for tool in reeve.tools:
        if tool.spec.server == SERVER and not tool.spec.hidden:
            await call(reeve, tool.spec.name, arguments_for(tool.spec.input))


async def add(reeve: Toolreeve, _: Mapping[str, Any]) -> None:
    result = await call(reeve, "add_numbers", {"a": 5, "b": 3})
    assert result.success, result


async def replay(reeve: Toolreeve, context: Mapping[str, Any]) -> None:
    """What is null is left out: the schemas have no place for it, and the runtime sends nothing that breaks them."""
    for each in context["toolCalls"]:
        given = each.get("arguments") or {}
        await call(reeve, each["name"], {name: value for name, value in given.items() if value is not None})


async def echo(reeve: Toolreeve, _: Mapping[str, Any]) -> None:
    focal = reeve.tools.resolve("json_schema_2020_12_tool").spec.declared or {}
    await call(reeve, "json_schema_echo", {"schema": focal["inputSchema"]})


async def use_everything(reeve: Toolreeve, context: Mapping[str, Any]) -> None:
    await call_everything(reeve, context)
    for _, resource in await reeve.fleet.resources():
        await call(reeve, relay_name(SERVER, "resources/read"), {"uri": resource["uri"]})
    for _, prompt in await reeve.fleet.prompts():
        await call(reeve, relay_name(SERVER, "prompts/get"), {"name": prompt["name"]})


async def connect(reeve: Toolreeve, _: Mapping[str, Any]) -> None:
    """Connecting lists the tools; there is nothing else to do."""
    print(reeve.fleet.status(), file=sys.stderr)


SCENARIOS: Mapping[str, Scenario] = {
    "initialize": connect,
    "json-schema-ref-no-deref": connect,
    "tools_call": add,
    "http-custom-headers": replay,
    "json-schema-2020-12-preservation": echo,
    "http-standard-headers": use_everything,
}


def arguments_for(schema: Mapping[str, Any]) -> dict[str, Any]:
    fields = schema.get("properties", {})
    return {name: PLACEHOLDERS.get(fields.get(name, {}).get("type"), "x") for name in schema.get("required", ())}


def server_table(url: str, context: Mapping[str, Any]) -> dict[str, Any]:
    oauth: dict[str, Any] = {"client_metadata_url": CLIENT_METADATA}
    oauth |= {key: context[key] for key in ("client_id", "client_secret", "issuer") if key in context}
    if os.environ["MCP_CONFORMANCE_SCENARIO"] == "auth/client-credentials-basic":
        oauth["grant"] = "client_credentials"
    return {"url": url, "trusted": True, "danger": "safe", "prefix": "", "oauth": oauth, "connect_timeout": 60}


async def main() -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    scenario = SCENARIOS.get(os.environ["MCP_CONFORMANCE_SCENARIO"], call_everything)
    with tempfile.TemporaryDirectory() as place:
        settings = Settings(
            workspace=Workspace(dir=place),
            state=State(dir=f"{place}/state"),
            network=Network(allow=("localhost:*", "127.0.0.1:*")),
        )
        servers = {SERVER: server_table(sys.argv[-1], context)}
        async with Toolreeve(settings=settings, mcp_servers=servers, mcp_authorize=follow) as reeve:
            print(reeve.fleet.status(), reeve.problems, file=sys.stderr)
            await scenario(reeve, context)


if __name__ == "__main__":
    asyncio.run(main())
