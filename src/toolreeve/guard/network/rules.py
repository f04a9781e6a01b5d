"""Network rules: the entries of `network.allow` and `network.deny`.

A rule is one line: `[METHOD[,METHOD]… ]HOST[:PORT]`, where HOST is a name, a pattern (`*.example.com`, `*`), an
address or a network (`10.0.0.0/8`, `[fd00::/8]`). Without a port an allow means 80 and 443, and a deny every port. A
pattern never opens a private address; a name spelled out, an address or a network does.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.core.urls import Address, parse_host
from toolreeve.guard.network.addresses import OPENED_BY_NAME, Zone, unmap, zone

Network = IPv4Network | IPv6Network
WEB_PORTS = frozenset({80, 443})
TUNNEL = "CONNECT"
_RULE = re.compile(r"(?:([A-Z]+(?:,[A-Z]+)*)\s+)?(\[[^\]]*\]|[^\s:\[\]]+|[0-9a-fA-F:.]+/\d+)(?::(\d{1,5}|\*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRule:
    """`ports` None means any port, `methods` None any method. At most one of `host`, `suffix`, `network` is set; with
    none of them the rule matches anywhere. `opens` are the zones beside the public one that the rule allows."""

    text: str
    host: str | None = None
    suffix: str | None = None
    network: Network | None = None
    ports: frozenset[int] | None = WEB_PORTS
    methods: frozenset[str] | None = None
    opens: frozenset[Zone] = frozenset()

    def names(self, host: str) -> bool:
        """Whether the rule names this host, or every host."""
        if self.network is not None:
            return False
        if self.host is not None:
            return host == self.host
        return self.suffix is None or host.endswith(self.suffix)

    @property
    def anywhere(self) -> bool:
        return self.host is None and self.suffix is None and self.network is None

    def holds(self, address: Address) -> bool:
        return self.network is not None and address.version == self.network.version and address in self.network

    def may_hold(self, address: Address | None) -> bool:
        """Whether the address is in the rule's network, or could be: a name has no address before it is resolved."""
        return self.network is not None and (address is None or self.holds(unmap(address)))

    def covers(self, port: int, method: str) -> bool:
        return (self.ports is None or port in self.ports) and (self.methods is None or method in self.methods)

    def touches(self, port: int, method: str) -> bool:
        """As `covers`, for a deny: what travels in a tunnel cannot be seen, so it counts as any method."""
        return (self.ports is None or port in self.ports) and (
            self.methods is None or method in self.methods or method == TUNNEL
        )


def parse_rules(lines: Iterable[str], *, key: str, source: str = "network settings") -> Sequence[NetworkRule]:
    """Raises ConfigError naming the first invalid line. A deny without a port covers every port."""
    every_port = key.endswith("deny")
    return tuple(_parse_rule(line, every_port=every_port, key=key, source=source) for line in lines)


def _parse_rule(line: str, *, every_port: bool, key: str, source: str) -> NetworkRule:
    found = _RULE.fullmatch(line.strip()) if isinstance(line, str) else None
    try:
        if found is None:
            raise ValueError("it does not have the form of one")
        methods, where, port = found.groups()
        ports = _parse_ports(port, every_port=every_port)
        named = frozenset(methods.split(",")) if methods else None
        return _parse_place(where, text=line.strip(), ports=ports, methods=named)
    except (ValueError, ToolError) as problem:
        raise ConfigError(
            f"{line!r} is not a network rule: {problem}",
            source=source,
            key=key,
            fix="write [METHODS ]HOST[:PORT], such as 'api.example.com', '*.example.com:8443' or 'GET 10.0.0.0/8:8080'",
        ) from None


def _parse_ports(text: str | None, *, every_port: bool) -> frozenset[int] | None:
    if text == "*" or (text is None and every_port):
        return None
    if text is None:
        return WEB_PORTS
    if not 0 < int(text) < 65536:
        raise ValueError(f"{text} is not a port")
    return frozenset({int(text)})


def _parse_place(where: str, *, text: str, ports: frozenset[int] | None, methods: frozenset[str] | None) -> NetworkRule:
    if where == "*":
        return NetworkRule(text=text, ports=ports, methods=methods)
    if where.startswith("*."):
        suffix, address = parse_host(where[2:])
        if address is not None:
            raise ValueError("a pattern of addresses is written as a network, such as 10.0.0.0/8")
        return NetworkRule(text=text, suffix=f".{suffix}", ports=ports, methods=methods)
    if "/" in where:
        network = ip_network(where.strip("[]"))
        return NetworkRule(text=text, network=network, opens=_opened(network), ports=ports, methods=methods)
    host, address = parse_host(where)
    if address is not None:
        network = ip_network(address)
        return NetworkRule(text=text, network=network, opens=_opened(network), ports=ports, methods=methods)
    return NetworkRule(text=text, host=host, opens=OPENED_BY_NAME, ports=ports, methods=methods)


def _opened(network: Network) -> frozenset[Zone]:
    """The zone of the network. A network that spans zones, such as 0.0.0.0/0, opens only the public one, and a metadata
    address must be named by itself."""
    first, last = zone(network[0]), zone(network[-1])
    return frozenset({first}) if first is last else frozenset()
