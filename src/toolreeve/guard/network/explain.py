"""What would the guard say of this URL, and why? The answer behind `toolreeve explain url`; nothing is connected to."""

from collections.abc import Mapping
from typing import Any

from toolreeve.core.errors import ToolError
from toolreeve.core.urls import parse_url
from toolreeve.guard.network.guard import NetworkGuard


async def explain_url(guard: NetworkGuard, url: str, *, method: str = "GET") -> Mapping[str, Any]:
    """One line of the answer: value, decision, reason, what was found."""
    found: dict[str, Any] = {"value": url, "decision": "deny", "reason": "", "rule": None, "addresses": []}
    try:
        target = parse_url(url)
        found |= {"url": target.url, "host": target.host, "port": target.port}
        guard.screen(target.host, target.port, method)
        addresses = [target.address] if target.address is not None else await guard.resolve(target.host)
        found["addresses"] = [str(address) for address in addresses]
        found["rule"] = guard.judge(target.host, target.port, method, addresses)
    except ToolError as refusal:
        return found | {"reason": refusal.message, "code": str(refusal.code)}
    return found | {"decision": "allow", "reason": f"every address is allowed by the rule {found['rule']!r}"}
