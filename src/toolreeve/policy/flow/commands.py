"""Information flow of shell commands: hosts they contact, text they run.

A command's own words decide where it goes, so its hosts and URLs are judged as the arguments of a request are. Paths
inside the workspace carry no authority: what changes there can be undone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from toolreeve.core.effects import CONTACTS, Effect, EffectKind
from toolreeve.core.labels import Authority, Provenance
from toolreeve.policy.flow.authority import ToolAuthority
from toolreeve.policy.flow.judge import FlowJudge
from toolreeve.policy.flow.matching import canonical, fold, host_of
from toolreeve.policy.flow.origin import trace

_URL = re.compile(r"https?://[^\s<>\"'`|;)]+")
EXECUTED = "executed"
_LEAST_DICTATED = 12


def judge_command(
    judge: FlowJudge, tool: ToolAuthority, command: str, effects: Sequence[Effect], foreign: Mapping[str, str]
) -> Iterator[Provenance]:
    """`foreign` maps paths in the command to what is known of their untrusted content."""
    hosts = [effect.target for effect in effects if effect.kind in CONTACTS]
    yield from _hosts(judge, tool, command, hosts)
    for path, source in foreign.items():
        why = f"runs or passes on text that came from outside ({source})"
        yield Provenance(parameter="command", value=path, kind=EXECUTED, why=why, source=source)
    if hosts or any(effect.kind not in (EffectKind.READ, EffectKind.EXEC) for effect in effects):
        yield from _dictated(judge, command)


def _hosts(judge: FlowJudge, tool: ToolAuthority, command: str, hosts: Sequence[str]) -> Iterator[Provenance]:
    """Those that the command's words choose; where a program always goes, no value decides."""
    urls = _URL.findall(command)
    chosen = [host for host in hosts if host_of(canonical(host)) in fold(command)]
    for host in dict.fromkeys(map(host_of, map(canonical, chosen))):
        named = [url for url in urls if host_of(canonical(url)) == host] or [host]
        for place in named:
            if not judge.vouching.may_visit(tool, "command", place):
                why = "the command contacts a host that nobody vouches for"
                yield trace(judge.memory, parameter="command", value=place, kind=Authority.HOST, why=why)


def _dictated(judge: FlowJudge, command: str) -> Iterator[Provenance]:
    """A command that changes or contacts something, and stands word for word in what strangers wrote."""
    text = " ".join(fold(command).split())
    if len(text) < _LEAST_DICTATED or text in " ".join(judge.memory.said.split()):
        return
    for result in judge.memory.results:
        if result.source.is_foreign and text in result.text:
            why = "the command stands word for word in a text from outside"
            yield trace(judge.memory, parameter="command", value=command, kind=Authority.COMMAND, why=why)
            return
