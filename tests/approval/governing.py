"""Governors as Python functions, for the tests."""

import threading
from typing import Any

SEEN: list[dict[str, Any]] = []


def approve(request: dict[str, Any]) -> dict[str, Any]:
    SEEN.append(request)
    return {"status": "approve", "messages": ["fine"], "score": 0.9}


async def reject(request: dict[str, Any]) -> dict[str, Any]:
    SEEN.append(request)
    return {"status": "reject", "messages": ["not on Fridays"], "followUpPrompt": "try on Monday"}


def attention(_: dict[str, Any]) -> dict[str, Any]:
    return {"status": "needs_attention", "messages": ["look at this"]}


def broken(_: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError("out of order")


def senseless(_: dict[str, Any]) -> Any:
    return {"status": True}


def nested(_: dict[str, Any]) -> Any:
    return {"status": ["approve"]}


def endless(_: dict[str, Any]) -> Any:
    return {"status": "approve", "score": 10**400}


def truthy(_: dict[str, Any]) -> Any:
    return "approve"


RELEASE = threading.Event()
HANGING: set[int] = set()


def hangs(_: dict[str, Any]) -> Any:
    """Outside Python, where no interrupt reaches it."""
    HANGING.add(threading.get_ident())
    RELEASE.wait()
    return {"status": "approve"}


def polite(request: dict[str, Any]) -> dict[str, Any]:
    if "please" in request["agentOutput"]:
        return {"status": "approve"}
    return {"status": "reject", "messages": ["impolite"], "followUpPrompt": "Say please."}
