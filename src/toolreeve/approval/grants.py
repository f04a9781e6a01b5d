"""Session grants: approvals that also cover later calls.

A grant holds in the same session and workspace, for the same principal and client, through the same door, under the
same policy, and for the same tool with the same definition. It covers
- the same call: of the same danger, with the same effects on the same resolved paths if it only touches files (the
  content may differ), else with exactly the same arguments;
- or the calls that a rule covers, which the person chose from what was offered. It answers only what the same policy
  rule, or none, asks about: a wider yes does not answer what another rule asks.
Grants are rows that all processes share. A session that we did not name may be two programs': its grants hold only in
the process that was granted them, and end with it. Each decision reads the rows: a revoked grant answers nothing more.
"""

from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.approval.request import Scope, definition, fingerprint
from toolreeve.core import json
from toolreeve.core.action import Action
from toolreeve.core.call import new_id
from toolreeve.core.effects import EffectKind
from toolreeve.core.grants import Grant, GrantStore

LIFETIME = 12 * 3600.0
MAX_WORDS = 300
_FILE_EFFECTS = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))

Rule = Mapping[str, Any]
"""A rule as a policy file writes it."""
Covers = Callable[[Rule, Action], bool]


def only_touches_files(action: Action) -> bool:
    return bool(action.effects) and all(effect.kind in _FILE_EFFECTS for effect in action.effects)


class Grants:
    """`process` names this process, `lifetime` is the longest that a grant may hold; `redact` removes secrets from the
    words that describe it."""

    def __init__(
        self,
        store: GrantStore,
        *,
        now: Callable[[], float],
        process: str,
        workspace: str = "",
        lifetime: float = LIFETIME,
        covers: Covers | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._store = store
        self._now = now
        self._process = process
        self._workspace = workspace
        self._lifetime = lifetime
        self._covers = covers
        self._redact = redact

    async def add(
        self,
        action: Action,
        *,
        version: str,
        by: str,
        rule: Rule | None = None,
        sentence: str = "",
        asked_by: str | None = None,
        expires: float | None = None,
        uses: int | None = None,
    ) -> bool:
        """With a rule, for the calls of the same holder that it covers; else for the same call. `asked_by` is the
        policy rule that asked. False, and nothing is stored, if it has expired or been used up already."""
        now = self._now()
        ends = min(now + self._lifetime, expires or float("inf"))
        if ends <= now or (uses is not None and uses <= 0):
            return False
        call = action.call
        holder = self._holder(action, version)
        if rule is None:
            covers: Mapping[str, Any] = {"call": _key(action, holder), "words": self._describe(action)}
        else:
            covers = {"asker": fingerprint(holder, asked_by), "rule": rule, "words": self._redact(sentence)}
        grant = Grant(
            id=new_id(),
            scope=Scope.SESSION.value,
            user=call.principal.user,
            client=call.client,
            session=call.session,
            process=self._process_of(action),
            tool=action.spec.name,
            digest=fingerprint(holder, covers),
            covers=covers,
            granted_by=by,
            granted_at=now,
            expires=ends,
            uses=uses,
        )
        await self._store.add(grant, call_id=call.id)
        return True

    async def find(self, action: Action, *, version: str, asked_by: str | None = None) -> str | None:
        """The user who granted it, or None. One use is counted."""
        call = action.call
        found = await self._store.find(
            user=call.principal.user, session=call.session, tool=action.spec.name, process=self._process
        )
        if not found:
            return None
        holder = self._holder(action, version)
        key = _key(action, holder)
        asker = fingerprint(holder, asked_by)
        for grant in found:
            is_covered = grant.covers.get("call") == key or self._is_ruled(grant.covers, action, asker)
            if is_covered and (grant.uses is None or await self._store.use(grant)):
                return grant.granted_by
        return None

    async def end(self) -> None:
        """Delete the grants that hold only in this process."""
        await self._store.end(self._process)

    def _is_ruled(self, covers: Mapping[str, Any], action: Action, asker: str) -> bool:
        return covers.get("asker") == asker and self._covers is not None and self._covers(covers["rule"], action)

    def _process_of(self, action: Action) -> str:
        return "" if action.call.session_issued else self._process

    def _holder(self, action: Action, version: str) -> str:
        call = action.call
        principal = call.principal
        return fingerprint(
            definition(action.spec),
            self._workspace,
            call.session,
            self._process_of(action),
            call.client,
            call.origin,
            principal.user,
            principal.role.value,
            version,
        )

    def _describe(self, action: Action) -> str:
        if only_touches_files(action):
            text = ", ".join(sorted(f"{effect.kind} {effect.target}" for effect in action.effects))
        else:
            text = f"exactly {json.dumps(action.args).decode()}"
        text = self._redact(text)
        return text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]}⋯"


def _key(action: Action, holder: str) -> str:
    if only_touches_files(action):
        subject: Any = sorted(f"{effect} {effect.reach}" for effect in action.effects)
    else:
        subject = action.args
    return fingerprint(holder, action.danger.value, subject)
