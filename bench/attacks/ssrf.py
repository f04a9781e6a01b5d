"""Attacks on the network guard: spellings of forbidden addresses, our own and published ones.

Nothing is connected: URLs are checked, and every name resolves to the address that its attacker would want.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

from bench.attacks.outcome import Tally
from toolreeve.core.urls import Address
from toolreeve.guard.network.guard import NetworkGuard

PUBLIC = ip_address("93.184.216.34")
LOOPBACK = ip_address("127.0.0.1")
FORBIDDEN = (
    *("0.0.0.0", "10.1.2.3", "100.64.9.9", "100.100.100.200", "127.0.0.1", "127.9.8.7", "169.254.169.254"),
    *("172.20.0.1", "192.0.0.192", "192.168.0.1", "198.18.5.5", "224.0.0.251", "240.1.1.1", "255.255.255.255"),
)
SPELLINGS: dict[str, Callable[[IPv4Address], str]] = {
    "dotted": str,
    "trailing dot": lambda ip: f"{ip}.",
    "decimal": lambda ip: str(int(ip)),
    "hex": lambda ip: hex(int(ip)),
    "padded hex": lambda ip: f"0x{int(ip):020x}",
    "octal": lambda ip: f"0{int(ip):o}",
    "dotted octal": lambda ip: ".".join(f"0{part:o}" for part in ip.packed),
    "dotted hex": lambda ip: ".".join(f"0X{part:X}" for part in ip.packed),
    "two parts": lambda ip: f"{ip.packed[0]}.{int(ip) & 0xFFFFFF}",
    "three parts": lambda ip: f"0x{ip.packed[0]:x}.{ip.packed[1]}.{int(ip) & 0xFFFF}",
    "overflow": lambda ip: ".".join(str(part + 256) for part in ip.packed),
    "large": lambda ip: str(int(ip) + 2**32),
    "percent": lambda ip: "".join(f"%{ord(character):02x}" for character in str(ip)),
    "full width": lambda ip: "".join(chr(ord(character) + 0xFEE0) for character in str(ip)),
    "bold": lambda ip: _digits(ip, 0x1D7CE),
    "Arabic": lambda ip: _digits(ip, 0x660),
    "Bengali": lambda ip: _digits(ip, 0x9E6),
    "ideographic dot": lambda ip: str(ip).replace(".", "。"),
    "soft hyphen": lambda ip: str(ip).replace(".", "\u00ad."),
    "mapped": lambda ip: f"[::ffff:{ip}]",
    "mapped hex": lambda ip: f"[0:0:0:0:0:FFFF:{int(ip) >> 16:x}:{int(ip) & 0xFFFF:x}]",
    "compatible": lambda ip: f"[::{int(ip) >> 16:x}:{int(ip) & 0xFFFF:x}]",
    "translated": lambda ip: f"[::ffff:0:{ip}]",
    "NAT64": lambda ip: f"[64:ff9b::{ip}]",
    "local NAT64": lambda ip: f"[64:ff9b:1::{ip}]",
    "6to4": lambda ip: f"[2002:{int(ip) >> 16:x}:{int(ip) & 0xFFFF:x}::1]",
    "Teredo": lambda ip: f"[2001:0:1:2:3:4:{(int(ip) ^ 0xFFFFFFFF) >> 16:x}:{(int(ip) ^ 0xFFFFFFFF) & 0xFFFF:x}]",
    "ISATAP": lambda ip: f"[2606:4700::5efe:{ip}]",
    "zone": lambda ip: f"[::ffff:{ip}%25lo]",
    "name": lambda ip: f"{ip}.resolves.example",
    "userinfo": lambda ip: f"public.example@{ip}",
    "backslash": lambda ip: f"public.example\\@{ip}",
    "backslash behind": lambda ip: f"{ip}\\@public.example",
    "port first": lambda ip: f"public.example:80@{ip}",
    "encoded at": lambda ip: f"public.example%40{ip}",
    "NUL": lambda ip: f"{ip}%00.public.example",
    "tab": lambda ip: str(ip).replace(".", "\t.", 1),
}
BENIGN = [
    "http://public.example/",
    "https://public.example/a/b?c=d&e=http://127.0.0.1/#f",
    "HTTPS://PUBLIC.example:443/",
    "http://public.example./",
    "https://www.public.example/@user/%7Efoo/a b",
    "http://bücher.example/größe?q=ü",
    "https://xn--bcher-kva.example/",
    "https://a_b.public.example/",
    "http://8.8.8.8/",
    "http://0x08080808/",
    "https://[2606:4700:4700::1111]/dns-query",
    "http://public.example/\\path",
    "https://1e100.example/",
    "https://10.0.0.1.public.example/",
    "https://127.0.0.1.public.example/",
    "https://localhost.public.example/",
]


def _digits(ip: IPv4Address, zero: int) -> str:
    return "".join(chr(zero + int(character)) if character.isdigit() else character for character in str(ip))


@dataclass(frozen=True, slots=True)
class Case:
    url: str
    harmful: bool
    leads_to: Address


class _OneAnswer:
    """Every name leads where this case wants it to."""

    def __init__(self) -> None:
        self.address: Address = PUBLIC

    async def resolve(self, _: str) -> Sequence[Address]:
        return [self.address]


async def run(corpora: Path | None) -> list[Tally]:
    tallies = [await _judge("own spellings", _own())]
    for path in sorted(corpora.glob("ssrf_*.jsonl")) if corpora else ():
        tallies.append(await _judge(path.name, _read(path)))
    return tallies


async def _judge(name: str, cases: Iterable[Case]) -> Tally:
    tally = Tally(name=name)
    resolver = _OneAnswer()
    guard = NetworkGuard(resolver=resolver)
    for case in cases:
        resolver.address = case.leads_to
        allowed = (await guard.explain(case.url))["decision"] == "allow"
        tally.payloads += 1
        tally.attempts += 1
        tally.refused += not allowed
        tally.harmless += allowed and not case.harmful
        if case.harmful and allowed:
            tally.escaped.append(case.url)
        if not case.harmful and not allowed:
            tally.refused_wrongly.append(case.url)
    return tally


def _own() -> Iterator[Case]:
    for text in FORBIDDEN:
        address = IPv4Address(text)
        for spell in SPELLINGS.values():
            for scheme in ("http://", "https://", "HTTP:\\\\", "http:", "gopher://", "file://", "jar:http://"):
                yield Case(f"{scheme}{spell(address)}/", harmful=True, leads_to=address)
    for url in BENIGN:
        yield Case(url, harmful=False, leads_to=PUBLIC)


def _read(path: Path) -> Iterator[Case]:
    for line in path.read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        expected = str(row["expect"])
        if expected.startswith("block"):
            yield Case(row["url"], harmful=True, leads_to=_wanted(row.get("target", "")))
        elif expected.startswith(("allow", "connect-to-allowed", "external-redirector")):
            yield Case(row["url"], harmful=False, leads_to=PUBLIC)


def _wanted(target: str) -> Address:
    try:
        return ip_address(target)
    except ValueError:
        return LOOPBACK
