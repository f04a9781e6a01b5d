"""Handlers of HTTP and DNS clients: hosts contacted, data sent, files written."""

import re

from toolreeve.core.effects import EffectKind
from toolreeve.core.http import READING_METHODS
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_arguments, apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags, conclude

_READING = READING_METHODS | {"TRACE"}
_LOOKING = re.compile(r"(?:PWD|SYST|FEAT|HELP|NOOP|STAT|(?:SIZE|MDTM|CWD|MLST|LIST|NLST|TYPE) [\w./-]+)", re.IGNORECASE)
_WHOLE_SITES = ("-r", "--recursive", "-m", "-p", "-x", "-H")
_PLAIN_NAME = re.compile(r"[\w.,+@-]+")
_NO_HOST = re.compile(r"@|[A-Za-z][\w+.-]*:/(?!/)")
"""curl reads `file:/x` as a file, and what follows an at sign as a list of addresses."""
_RECORD = re.compile(
    r"A|AAAA|ANY|AXFR|CAA|CH|CNAME|DNSKEY|DS|HINFO|HTTPS|IN|MX|NAPTR|NS|NSEC3?|PTR|RRSIG|SOA|SPF|SRV|SSHFP|SVCB|TLSA|TXT"
)
_BODIES = frozenset(
    "-d --data --data-raw --data-binary --data-urlencode --data-ascii --json -F --form --form-string -T "
    "--upload-file".split()
)


def curl(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    methods = [value for flag, value in arguments.flags if flag in ("-X", "--request")]
    sends = any(flag in _BODIES for flag, _ in arguments.flags) and not arguments.has("-G", "--get")
    sends = sends or any(method not in _READING for method in methods)
    for flag, value in arguments.flags:
        _value(spec, flag, value, site)
    addresses = [
        *arguments.operands,
        *(value for flag, value in arguments.flags if flag == "--url" and value is not None),
    ]
    if not addresses:
        raise NotKnown("curl without an address")
    for address in addresses:
        if isinstance(address, str) and _NO_HOST.match(address):
            raise NotKnown(f"the address `{address}`, which may be a file")
        site.contact_host(
            EffectKind.SEND if sends else EffectKind.NET,
            address if arguments.has("-g", "--globoff") else _plain(address),
        )
        if arguments.has("-O", "--remote-name", "--remote-name-all"):
            named = arguments.has("-J", "--remote-header-name")
            site.touch(EffectKind.WRITE, Glob("*") if named else shown(address).rstrip("/").rpartition("/")[2])
    return None


def _plain(address: Word) -> Word:
    if isinstance(address, str) and any(char in address for char in "{}[]"):
        raise NotKnown("an address with a pattern in it")
    return address


def _value(spec: Program, flag: str, value: Word | None, site: CommandSite) -> None:
    if value is None:
        return
    role = spec.flags[flag]
    if isinstance(value, Dynamic):
        raise NotKnown(f"the value of {flag} is decided only when it runs")
    if flag in _BODIES or flag in ("-H", "--header", "-b", "--cookie", "-w", "--write-out"):
        _from_file(flag, str(value), site)
    elif flag in ("-Q", "--quote") and not _LOOKING.fullmatch(str(value)):
        raise NotKnown(f"the FTP command `{value}`")
    elif role != "text" and flag != "--url":
        apply_role(role, value, site)


def _from_file(flag: str, value: str, site: CommandSite) -> None:
    """Data, headers, cookies and formats can be read from a file by `@`; cookies also without."""
    uploads = flag in ("-F", "--form", "-T", "--upload-file") or value[:1] == "@"
    if uploads or (flag == "--data-urlencode" and "@" in value):
        raise NotKnown(f"{flag} sends a file")
    if flag in ("-b", "--cookie") and "=" not in value:
        site.touch(EffectKind.READ, value)
    if flag in ("-w", "--write-out") and "%output{" in value:
        raise NotKnown(f"{flag} writes a file")


def wget(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Saves what it fetches, unless a flag makes it print or only check."""
    arguments = read(spec, words)
    apply_arguments(spec, arguments, site)
    named = arguments.has("-O", "--output-document", "--spider")
    if not named and not arguments.has("-P", "--directory-prefix"):
        _save(arguments, site)
    return None


def _save(arguments: Arguments, site: CommandSite) -> None:
    """Saved under the last part of the address, perhaps with a number appended; whole sites go into directories."""
    names = [shown(address).rstrip("/").rpartition("/")[2] for address in arguments.operands]
    if arguments.has(*_WHOLE_SITES) or not all(map(_PLAIN_NAME.fullmatch, names)):
        apply_role("tree", ".", site)
        return
    for name in (*names, "index.html"):
        site.touch(EffectKind.WRITE, Glob(f"{name}*"))


def dig(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    asked = [value for flag, value in arguments.flags if flag in ("-q", "-x") and value is not None]
    for operand in (*arguments.operands, *asked):
        if not isinstance(operand, str):
            raise NotKnown(f"asks for `{shown(operand)}`, a name decided only when it runs")
        if not operand.startswith("+") and not _RECORD.fullmatch(operand):
            site.contact_host(EffectKind.NET, operand.lstrip("@").rstrip("."))
    return None


def gh_api(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    methods = [value for flag, value in arguments.flags if flag in ("-X", "--method")]
    if any(method not in ("GET", "HEAD") for method in methods):
        raise NotKnown("a request that changes something")
    if "graphql" in arguments.operands:
        raise NotKnown("a GraphQL request")
    apply_flags(spec, arguments, site)
    for operand in arguments.operands:
        if not isinstance(operand, str) and not (isinstance(operand, Dynamic) and operand.prefix):
            raise NotKnown(f"contacts `{shown(operand)}`, an address decided only when it runs")
    return conclude(spec, arguments, site)
