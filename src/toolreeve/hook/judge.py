"""Decides about the calls of agent clients by the configured policy.

Their programs run without our sandbox and their edits without our undo, so nothing is allowed for the sake of either.
What the guards of files and network refuse to our own tools is refused to theirs, too.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import realpath
from typing import Any

from toolreeve.config import Configuration
from toolreeve.config.guard_table import guard_table
from toolreeve.core.action import Action
from toolreeve.core.call import Principal
from toolreeve.core.effects import FILE_EFFECTS, EffectKind, Reach
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Failure
from toolreeve.core.secrets.paths import find_secret, is_sensitive
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.hook.client_tools import ClientCall, translate
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.layers import decide, with_rationale
from toolreeve.policy.shadow import decide_shadow
from toolreeve.record.journal import Journal
from toolreeve.runtime.files import new_files
from toolreeve.runtime.policy_source import PolicySource

_SYSTEM = ("/bin/", "/lib/", "/lib64/", "/sbin/", "/usr/")
"""Everyone may read these; they hold programs, and no secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """One call of a client, as its hook or its request for permission describes it. `client` is the program's name, for
    the record."""

    client: str
    session: str
    tool: str
    args: dict[str, Any]
    cwd: str
    origin: str = "hook"


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """`shadow` is what rules that are not enforced would have decided, if something else."""

    action: Action
    verdict: Verdict
    shadow: Verdict | None


class Judge:
    """The policy of one configuration. `close` it."""

    def __init__(self, configuration: Configuration, principal: Principal) -> None:
        self._configuration = configuration
        self._principal = principal
        self._policy = PolicySource(configuration, None)
        self._files = new_files(configuration, guard_table(configuration))

    def close(self) -> None:
        self._files.close()

    @property
    def version(self) -> str:
        """Of the policy: an answer to a question does not outlive it."""
        return self._policy().version

    def judge(self, request: ClientRequest) -> Sequence[JudgedCall]:
        """Every call of ours that the client's stands for, with its verdict; the strictest counts."""
        return self.judge_calls(translate(request.tool, request.args, cwd=request.cwd), request)

    def judge_calls(self, calls: Sequence[ClientCall], request: ClientRequest) -> Sequence[JudgedCall]:
        """The same for calls that are translated already."""
        return [self._judge(_with_real_path(each), request) for each in calls]

    def _judge(self, call: ClientCall, request: ClientRequest) -> JudgedCall:
        action = self._new_action(call, request)
        state = self._policy()
        verdict = with_rationale(decide(action, state), action)
        stricter = max(self._objections(action), key=lambda each: each.decision, default=verdict)
        if stricter.decision > verdict.decision:
            verdict = stricter
        return JudgedCall(action, verdict, decide_shadow(action, verdict, state))

    def _new_action(self, call: ClientCall, request: ClientRequest) -> Action:
        settings = self._configuration.settings
        action = build_action(
            call.tool,
            call.args,
            root=settings.workspace.dir,
            principal=self._principal,
            session=request.session,
            origin=request.origin,
            home=self._configuration.home,
            allowed=tuple(settings.workspace.sensitive_allow),
        )
        action.call.client = request.client
        tool = replace(action.tool, spec=replace(action.tool.spec, undoable=False, confinable=False))
        return Action(action.call, tool, call.args, self._files)

    def _objections(self, action: Action) -> Iterator[Verdict]:
        for effect in action.effects:
            if effect.kind in FILE_EFFECTS and effect.reach in (Reach.EXACT, Reach.BELOW, Reach.NAMES):
                yield from self._object_to_path(effect.target, change=effect.kind is not EffectKind.READ)
            elif effect.kind is EffectKind.NET:
                yield from self._object_to_host(effect.target, action)

    def _object_to_path(self, path: str, *, change: bool) -> Iterator[Verdict]:
        finding = self._files.explain(path, change=change)
        if finding.decision != "deny":
            return
        if self._is_outside(path):
            if change or not path.startswith(_SYSTEM):
                yield Verdict(Decision.ASK, "guard", f"{path} is outside the workspace")
        else:
            yield Verdict(Decision.DENY, "guard", finding.reason)

    def _is_outside(self, path: str) -> bool:
        """A path whose links lead out of the workspace, or that never was in it. Secrets are not merely outside."""
        real = realpath(path)
        names = real.strip("/").split("/")
        return not self._files.reaches(real) and not find_secret(names) and not is_sensitive(real)

    def _object_to_host(self, host: str, action: Action) -> Iterator[Verdict]:
        """Names are not looked up: the client does that itself, later."""
        from toolreeve.core.urls import parse_host
        from toolreeve.runtime.build import new_network_guard

        guard = new_network_guard(self._configuration)
        try:
            name, address = parse_host(host)
            guard.screen(name, 443, "GET")
            if address is not None:
                guard.judge(name, 443, "GET", [address])
        except ToolError as refusal:
            is_fetch = action.spec.name == "fetch_url"
            yield Verdict(Decision.DENY if is_fetch else Decision.ASK, "guard", refusal.message)


def _with_real_path(call: ClientCall) -> ClientCall:
    """Rules are about the file itself, whichever links lead to it."""
    path = call.args.get("path")
    if not isinstance(path, str) or "\0" in path:
        return call
    return ClientCall(call.tool, {**call.args, "path": realpath(path)})


async def record_judged(
    journal: Journal, judged: JudgedCall, outcome: Failure | None = None, *, approved_by: str = ""
) -> None:
    """What was allowed has no outcome: the client runs it, and does not say how it ended."""
    entry = Entry(judged.action.call, at=time.time(), started=0.0)
    entry.action = judged.action
    entry.meta.tool = judged.action.spec.name
    entry.meta.verdict = judged.verdict
    entry.meta.approved_by = approved_by or None
    entry.shadow = judged.shadow
    if judged.verdict.decision is Decision.DENY:
        outcome = Failure(ErrorCode.DENIED, judged.verdict.reason)
    entry.outcome = outcome
    if (written := journal.close(entry)) is not None:
        await written


def strictest(judged: Sequence[JudgedCall]) -> Verdict:
    return max((each.verdict for each in judged), key=lambda verdict: verdict.decision)
