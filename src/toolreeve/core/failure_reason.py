"""The line of a program's output that says why it failed."""

import re

LONGEST = 300
_FATAL = re.compile(r"(?:[\w./+-]+: )?(?:fatal|panic|abort)\b", re.IGNORECASE)
_ERROR = re.compile(r"(?:[\w./+:-]+:? )?(?:error|fehler)\b", re.IGNORECASE)
_USAGE = re.compile(r"\s*usage:", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"could ?n[o']t (?:resolve|connect)|(?:failed|unable) to (?:connect|resolve)|network is unreachable"
    r"|temporary failure in name resolution|name or service not known|connection refused|enotfound|econnrefused"
    r"|getaddrinfo|no route to host|bad address",
    re.IGNORECASE,
)
_CURL_UNCONNECTED = (6, 7)
_TRACEBACK = "Traceback (most recent call last):"


def find_reason(text: str) -> str:
    """The last line of a traceback; else the first that says it is fatal or an error; else the last one before a usage
    message, or the last. Empty if there is no text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    if _TRACEBACK in lines:
        return lines[-1][:LONGEST]
    for sign in (_FATAL, _ERROR):
        if (found := next((line for line in lines if sign.match(line)), None)) is not None:
            return found[:LONGEST]
    usage = next((number for number, line in enumerate(lines) if _USAGE.match(line)), len(lines))
    return lines[max(usage, 1) - 1][:LONGEST]


def lacks_network(text: str, *, script: str = "", status: int | None = None) -> bool:
    """Whether a program that was given no network says that it could not connect. A silent curl says so by its exit
    status."""
    return _NO_NETWORK.search(text) is not None or (status in _CURL_UNCONNECTED and "curl" in script)
