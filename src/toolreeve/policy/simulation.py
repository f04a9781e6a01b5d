"""Simulation: what another policy would decide about recorded calls.

Pure. Both policies judge the same hypothetical calls, so that a difference comes from the policies alone. A call whose
arguments are not in the record as they were, cut or redacted, is counted and left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core import json
from toolreeve.core.action import Action
from toolreeve.core.call import Principal, Role
from toolreeve.core.errors import ToolError
from toolreeve.core.secrets.redactor import MARK
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.hypothetical import HOME, build_action
from toolreeve.policy.layers import decide
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import decide_trial

MOST_KEPT = 100_000
_REDACTED = MARK.encode()
_CUT = b'"sha256":'


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call from the record. `written` are its arguments as JSON, if they are at hand."""

    id: str
    tool: str
    args: Mapping[str, Any]
    principal: Principal
    session: str
    origin: str
    recorded: str = ""
    approved_by: str | None = None
    written: bytes = b""

    @staticmethod
    def from_record(call_id: str, body: Mapping[str, Any]) -> "PastCall | None":
        """None for a record that does not hold a whole call."""
        args = body.get("args")
        role = body.get("role")
        if not isinstance(args, dict) or not isinstance(body.get("tool"), str) or role not in _ROLES:
            return None
        written = json.dumps(args)
        if _REDACTED in written or _CUT in written:
            return None
        decision = body.get("decision") or {}
        return PastCall(
            id=call_id,
            tool=body["tool"],
            args=args,
            principal=Principal(user=str(body.get("user", "")), role=_ROLES[role]),
            session=str(body.get("session", "")),
            origin=str(body.get("origin", "")),
            recorded=str(decision.get("effect", "")),
            approved_by=body.get("approved_by"),
            written=written,
        )


_ROLES = {role.value: role for role in Role}


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """`before` is by the present policy, `after` by the new one."""

    call: PastCall
    before: Verdict
    after: Verdict

    def to_dict(self) -> dict[str, Any]:
        return {
            "call_id": self.call.id,
            "tool": self.call.tool,
            "args": dict(self.call.args),
            "recorded": self.call.recorded,
            "from": self.before.decision.word,
            "to": self.after.decision.word,
            "rule": self.after.rule,
            "reason": self.after.reason,
        }


@dataclass(slots=True)
class Simulation:
    """`left_out` counts the records that could not be replayed. `changed` holds at most `MOST_KEPT` calls."""

    total: int = 0
    left_out: int = 0
    prompts_before: int = 0
    prompts_after: int = 0
    by: Counter[tuple[str, str]] = field(default_factory=Counter)
    changed: list[ChangedCall] = field(default_factory=list)

    def to_dict(self, limit: int) -> dict[str, Any]:
        return {
            "total": self.total,
            "left_out": self.left_out,
            "changed": sum(self.by.values()),
            "by": [{"from": before, "to": after, "n": count} for (before, after), count in self.by.most_common()],
            "prompts_before": self.prompts_before,
            "prompts_after": self.prompts_after,
            "calls": [each.to_dict() for each in self.changed[:limit]],
        }


class Simulator:
    """Judges calls of one workspace by two policies. Calls that no rule can tell apart are judged once."""

    def __init__(
        self,
        present: PolicyState,
        new: PolicyState,
        *,
        root: str,
        home: str = HOME,
        allowed: Sequence[str] = (),
    ) -> None:
        self._states = (present, new)
        self._root = root
        self._home = home
        self._allowed = tuple(allowed)
        rules = [matcher.rule for state in self._states for matcher in (*state.floor, *state.denies, *state.rules)]
        self._by_session = any(rule.session is not None for rule in rules)
        self._judged: dict[tuple[object, ...], tuple[Verdict, Verdict] | None] = {}

    def run(self, calls: Iterable[PastCall | None]) -> Simulation:
        found = Simulation()
        for call in calls:
            verdicts = None if call is None else self._judge(call)
            if call is None or verdicts is None:
                found.left_out += 1
                continue
            before, after = verdicts
            found.total += 1
            found.prompts_before += before.decision is Decision.ASK
            found.prompts_after += after.decision is Decision.ASK
            if before.decision is not after.decision:
                found.by[before.decision.word, after.decision.word] += 1
                if len(found.changed) < MOST_KEPT:
                    found.changed.append(ChangedCall(call, before, after))
        return found

    def _judge(self, call: PastCall) -> tuple[Verdict, Verdict] | None:
        session = call.session if self._by_session else ""
        key = (call.tool, call.written or json.dumps(call.args), call.principal, call.origin, session)
        if key in self._judged:
            return self._judged[key]
        if len(self._judged) >= MOST_KEPT:
            self._judged.clear()
        verdicts = self._judged[key] = self._decide(call)
        return verdicts

    def _decide(self, call: PastCall) -> tuple[Verdict, Verdict] | None:
        try:
            present, new = self._verdicts(self.action(call))
        except (ToolError, TypeError, ValueError):
            return None
        return present, new

    def _verdicts(self, action: Action) -> Iterator[Verdict]:
        for state in self._states:
            yield decide_trial(action, decide(action, state), state)

    def action(self, call: PastCall) -> Action:
        return build_action(
            call.tool,
            call.args,
            root=self._root,
            principal=call.principal,
            session=call.session,
            origin=call.origin,
            home=self._home,
            allowed=self._allowed,
        )
