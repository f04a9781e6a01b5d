"""Agent card: one skill for each tool that the caller sees."""

from collections.abc import Iterable

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from toolreeve.core import json
from toolreeve.core.tool import ToolSpec
from toolreeve.serve.a2a.development import EXTENSION

RPC = "/a2a"
REST = "/a2a/rest"
VERSION = "1.0"
OLD_VERSION = "0.3"
MODES = ("text/plain", "application/json")
LOCKED = AgentSkill(
    id="tools",
    name="Tools",
    description="Send a bearer token to see the tools that it may use: GetExtendedAgentCard lists them.",
    tags=["tool"],
)


def new_card(
    base: str, version: str, specs: Iterable[ToolSpec] | None, *, requires_token: bool, grpc: str = ""
) -> AgentCard:
    """`base` is our own address over HTTP and `grpc` that over gRPC; both may be empty. Without `specs`, the caller may
    see none of the tools."""
    card = AgentCard(
        name="Toolreeve",
        description="Runs tools for agents: each call is decided by policy, approved, confined and recorded.",
        version=version,
        provider=AgentProvider(organization="Toolreeve", url=base),
        supported_interfaces=_interfaces(base, grpc),
        capabilities=AgentCapabilities(
            streaming=True, push_notifications=True, extended_agent_card=True, extensions=[EXTENSION]
        ),
        default_input_modes=MODES,
        default_output_modes=MODES,
        skills=[LOCKED] if specs is None else [new_skill(spec) for spec in specs],
    )
    if requires_token:
        scheme = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))
        card.security_schemes["bearer"].CopyFrom(scheme)
        card.security_requirements.append(SecurityRequirement(schemes={"bearer": StringList(list=[])}))
    return card


def new_skill(spec: ToolSpec) -> AgentSkill:
    examples = [
        json.dumps({"toolCalls": [{"id": "1", "toolId": spec.name, "parameters": dict(each.get("args", each))}]})
        for each in spec.examples
    ]
    return AgentSkill(
        id=spec.name,
        name=spec.title or spec.name,
        description=spec.description,
        tags=list(dict.fromkeys(("tool", spec.category, spec.danger.value, *spec.tags))),
        examples=[each.decode() for each in examples],
    )


def _interfaces(base: str, grpc: str) -> list[AgentInterface]:
    http = [(f"{base}{RPC}", "JSONRPC", VERSION), (f"{base}{REST}", "HTTP+JSON", VERSION)]
    places = http if base else []
    if grpc:
        places.append((grpc, "GRPC", VERSION))
    if base:
        places.append((f"{base}{RPC}", "JSONRPC", OLD_VERSION))
    return [
        AgentInterface(url=url, protocol_binding=binding, protocol_version=version) for url, binding, version in places
    ]
