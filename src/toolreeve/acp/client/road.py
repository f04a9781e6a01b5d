"""Calls of an agent's session on the road; their errors as ACP."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolreeve.core.call import Principal, ToolCall
from toolreeve.core.errors import TRAITS
from toolreeve.core.mcp import RpcError
from toolreeve.core.result import Failed, ToolResult

if TYPE_CHECKING:
    from toolreeve.core.peer import Peer
    from toolreeve.runtime.toolreeve import Toolreeve

ErrorProfile = Literal["acp-basic", "extended-json"]
BETWEEN_TURNS = "no turn is running: an agent acts only while it works on a prompt"


@dataclass(slots=True, kw_only=True)
class Road:
    """`client` is the agent's name. `peer` is the caller of the running turn, to whom questions can be shown;
    `in_turn` says that there is one: between turns an agent does nothing. `profile` says how the data of an error is
    written: as a text, or as an object."""

    reeve: "Toolreeve"
    session: str
    principal: Principal
    client: str
    profile: ErrorProfile = "acp-basic"
    peer: "Peer | None" = None
    in_turn: bool = False

    def new_call(self, tool: str, args: Mapping[str, Any], peer: "Peer | None" = None) -> ToolCall:
        return ToolCall(
            tool=tool,
            args=args,
            session=self.session,
            principal=self.principal,
            origin="acp",
            client=self.client,
            peer=peer or self.peer,
        )

    async def call(self, tool: str, args: Mapping[str, Any]) -> ToolResult:
        return await self.reeve.run(self.new_call(tool, args))

    def error(self, result: Failed) -> RpcError:
        failure = result.error
        detail: Any = failure.message
        if self.profile == "extended-json":
            detail = {
                "code": failure.code.value,
                "message": failure.message,
                "retryable": bool(failure.retryable),
                "suggestions": list(failure.suggestions),
            }
        return RpcError(TRAITS[failure.code].jsonrpc, failure.message, detail)
