"""Network guard: every outgoing connection is checked here first.

The name is resolved once, every address it has is judged, and only the judged addresses are returned to connect to. One
forbidden address refuses the name. Denies come before allows; no rule means no.
"""

import asyncio
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolreeve.core.errors import ConfigError, ErrorCode, ToolError
from toolreeve.core.network import Connection
from toolreeve.core.urls import Address, Target, forbidden, parse_host, parse_url
from toolreeve.guard.network.addresses import Zone, unmap, with_embedded_ipv4, zone
from toolreeve.guard.network.resolver import Resolver, SystemResolver
from toolreeve.guard.network.rules import WEB_PORTS, NetworkRule, parse_rules

MEGABYTE = 1024 * 1024
MAX_ADDRESSES = 4
MAX_CACHED = 4096
_PROXY = r"https?://(?:[^\s/@]+@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?/?"
_LOCAL_SUFFIXES = (
    ".localhost",
    ".local",
    ".localdomain",
    ".internal",
    ".intranet",
    ".private",
    ".corp",
    ".home",
    ".lan",
    ".home.arpa",
    ".onion",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """`allow` is the whole list: empty means nothing may be reached; `*` is any public host on ports 80 and 443."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    proxy: str | None = None
    ca_file: str | None = None
    timeout: float = 30.0
    connect_timeout: float = 10.0
    max_body: int = 10 * MEGABYTE
    max_redirects: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedAddresses:
    """The addresses that a connection may use, and the rule that allows it."""

    addresses: Sequence[Address]
    rule: str


class NetworkGuard:
    def __init__(self, settings: NetworkSettings | None = None, resolver: Resolver | None = None) -> None:
        self.settings = settings or NetworkSettings()
        self._allow = parse_rules(self.settings.allow, key="network.allow")
        self._deny = parse_rules(self.settings.deny, key="network.deny")
        _check_proxy(self.settings.proxy)
        self._resolver = resolver or SystemResolver()
        self._candidates: dict[tuple[str, int, str], Sequence[NetworkRule]] = {}
        self.methods_matter = any(rule.methods for rule in (*self._allow, *self._deny))

    def opened(self, target: Target) -> "NetworkGuard":
        """This guard with one more reachable place: the host and port of a configured server.

        Denies still come first, and a metadata address is opened by `network.allow` alone.
        """
        if target.address is not None and zone(target.address) is Zone.METADATA:
            return self
        rule = f"{_bracketed(target.host)}:{target.port}"
        return NetworkGuard(replace(self.settings, allow=(*self.settings.allow, rule)), self._resolver)

    def screen(self, host: str, port: int, method: str) -> Sequence[NetworkRule]:
        """The rules that may allow this, before anything is resolved: a name that no rule can allow is never looked up.

        Raises ToolError(URL_FORBIDDEN).
        """
        key = (host, port, method)
        found = self._candidates.get(key)
        if found is None:
            found = self._screen(host, port, method)
            if len(self._candidates) >= MAX_CACHED:
                self._candidates.clear()
            self._candidates[key] = found
        return found

    def _screen(self, host: str, port: int, method: str) -> Sequence[NetworkRule]:
        for rule in self._deny:
            if rule.touches(port, method) and rule.names(host):
                raise forbidden(f"{host}:{port} is refused by the rule {rule.text!r} of network.deny")
        address = parse_host(_bracketed(host))[1]
        named = [rule for rule in self._allow if rule.names(host) or rule.may_hold(address)]
        if _is_local_name(host):
            named = [rule for rule in named if not rule.anywhere]
        if found := [rule for rule in named if rule.covers(port, method)]:
            return found
        raise forbidden(_why_no_rule(host, port, method, named))

    def judge(self, host: str, port: int, method: str, addresses: Sequence[Address]) -> str:
        """The rule that allows every one of these addresses. Raises ToolError(URL_FORBIDDEN)."""
        candidates = self.screen(host, port, method)
        rule = ""
        for address in addresses:
            rule = self._judge_address(host, port, method, address, candidates)
        if not rule:
            raise forbidden(f"{host!r} has no address")
        return rule

    def _judge_address(
        self, host: str, port: int, method: str, address: Address, candidates: Sequence[NetworkRule]
    ) -> str:
        for rule in self._deny:
            if (
                rule.network is not None
                and rule.touches(port, method)
                and any(map(rule.holds, with_embedded_ipv4(address)))
            ):
                raise forbidden(f"{host}:{port} ({address}) is refused by the rule {rule.text!r} of network.deny")
        kind = zone(address)
        seen = unmap(address)
        for rule in candidates:
            if (kind is Zone.PUBLIC or kind in rule.opens) and (rule.names(host) or rule.holds(seen)):
                return rule.text
        where = str(address) if host == str(address) else f"{host} ({address})"
        if kind is Zone.PUBLIC:
            raise forbidden(f"{where} is in no network of network.allow")
        if kind is Zone.METADATA:
            raise forbidden(f"{where} is not a public address but {kind}")
        raise forbidden(
            f"{where} is not a public address but {kind}; to open it, add '{_bracketed(seen)}:{port}' to network.allow"
        )

    async def resolve(self, host: str) -> Sequence[Address]:
        """Raises ToolError: HTTP_ERROR if the name has no address, HTTP_TIMEOUT if the resolver does not answer."""
        try:
            async with asyncio.timeout(self.settings.connect_timeout):
                return await self._resolver.resolve(host)
        except TimeoutError:
            raise ToolError(ErrorCode.HTTP_TIMEOUT, f"resolving {host!r} timed out") from None

    async def check(self, host: str, port: int, method: str) -> None:
        """Whether a request may be sent, before a connection is chosen for it. Raises ToolError.

        The connection itself is judged when it is made; behind a proxy that happens elsewhere, so it is judged here.
        """
        name, address = parse_host(_bracketed(host))
        if self.settings.proxy is not None:
            await self.admit(name, port, method)
        elif address is not None:
            self.judge(name, port, method, [address])
        else:
            self.screen(name, port, method)

    async def admit(self, host: str, port: int, method: str) -> AdmittedAddresses:
        """Resolve once and judge every address. Raises ToolError."""
        name, address = parse_host(_bracketed(host))
        self.screen(name, port, method)
        addresses = [address] if address is not None else await self.resolve(name)
        rule = self.judge(name, port, method, addresses)
        for each in addresses:
            if zone(each) is Zone.PUBLIC and _is_own(each):
                raise forbidden(f"{name} ({each}) is an address of this machine")
        return AdmittedAddresses(addresses=addresses[:MAX_ADDRESSES], rule=rule)

    async def explain(self, url: str, *, method: str = "GET") -> Mapping[str, Any]:
        """The decision on a URL and its reason, as shown by `toolreeve explain url`; nothing is connected to."""
        found: dict[str, Any] = {"value": url, "decision": "deny", "reason": "", "rule": None, "addresses": []}
        try:
            target = parse_url(url)
            found |= {"url": target.url, "host": target.host, "port": target.port}
            self.screen(target.host, target.port, method)
            addresses = [target.address] if target.address is not None else await self.resolve(target.host)
            found["addresses"] = [str(address) for address in addresses]
            found["rule"] = self.judge(target.host, target.port, method, addresses)
        except ToolError as refusal:
            return found | {"reason": refusal.message, "code": str(refusal.code)}
        return found | {"decision": "allow", "reason": f"every address is allowed by the rule {found['rule']!r}"}

    async def dial(self, host: str, port: int, *, method: str) -> Connection:
        """Connect to the first judged address that accepts. Raises ToolError."""
        admission = await self.admit(host, port, method)
        problem: OSError | None = None
        for address in admission.addresses:
            try:
                async with asyncio.timeout(self.settings.connect_timeout):
                    reader, writer = await asyncio.open_connection(str(address), port)
            except OSError as failed:
                problem = failed
            else:
                return Connection(reader=reader, writer=writer, address=str(address), rule=admission.rule)
        raise _unreachable(host, port, problem)


def _check_proxy(url: str | None) -> None:
    if url is not None and not re.fullmatch(_PROXY, url):
        fix = "write http://HOST:PORT, with USER:PASSWORD@ before the host if the proxy needs them"
        raise ConfigError("is not the URL of an HTTP proxy", source="network settings", key="network.proxy", fix=fix)


def _unreachable(host: str, port: int, problem: OSError | None) -> ToolError:
    if isinstance(problem, TimeoutError):
        return ToolError(ErrorCode.HTTP_TIMEOUT, f"connecting to {host}:{port} timed out")
    why = getattr(problem, "strerror", None) or str(problem)
    return ToolError(ErrorCode.HTTP_ERROR, f"cannot connect to {host}:{port}: {why}")


def _why_no_rule(host: str, port: int, method: str, named: Sequence[NetworkRule]) -> str:
    if any(rule.ports is None or port in rule.ports for rule in named):
        return f"the method {method} to {host}:{port} needs a rule: add '{method} {host}:{port}' to network.allow"
    if named:
        return f"port {port} of {host} needs a rule: add '{_bracketed(host)}:{port}' to network.allow"
    if _is_local_name(host):
        return f"{host!r} is a local network name; to open it, add '{host}:{port}' to network.allow"
    rule = _bracketed(host) if port in WEB_PORTS else f"{_bracketed(host)}:{port}"
    return f"{host!r} is not in network.allow; add '{rule}' to it"


def _is_local_name(host: str) -> bool:
    return host.endswith(_LOCAL_SUFFIXES) or ("." not in host and ":" not in host)


def _bracketed(host: Address | str) -> str:
    text = str(host)
    return f"[{text}]" if ":" in text and not text.startswith("[") else text


def _is_own(address: Address) -> bool:
    """Whether this machine has the address. The kernel's routing decides; no packet is sent."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))
        except OSError:
            return False
        return str(probe.getsockname()[0]) == str(address)
