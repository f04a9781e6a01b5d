"""The workflow view of an agent: what its model will be given."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolreeve.agent.base_agent import BaseAgent

NODE = "agent_exec"


@dataclass(frozen=True, slots=True)
class WorkflowNode:
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workflow:
    nodes: dict[str, WorkflowNode]

    def build(self) -> "Workflow":
        return self


class WorkflowGenerator:
    def __init__(self, agent: "BaseAgent") -> None:
        self.agent = agent

    def generate_signature_workflow(self) -> Workflow:
        """One node, the model, with its tools. Works inside and outside of an event loop."""
        config = self.agent.config
        node = WorkflowNode(
            {
                "provider": config.llm_provider,
                "model": config.model,
                "temperature": config.temperature,
                "inputs": list(self.agent.signature.inputs),
                "outputs": list(self.agent.signature.outputs),
                "tools": self.agent.declared_tools(),
            }
        )
        return Workflow({NODE: node})
