"""Approval requests and answers.

An answer fits one request only, by digest. The digest covers the tool and its definition, the arguments and the
resolved effects, the principal, the policy and the request itself, so an answer cannot be used for another call, nor
for the same call twice.
"""

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.call import Principal, new_question_id
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.tool import ToolSpec
from toolreeve.core.verdict import Verdict


class Scope(StrEnum):
    """How long a grant holds."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a yes for this session, or for always, may cover: a plain sentence, and the rule that says the same."""

    sentence: str
    rule: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's answer, given on `channel` by the principal `approver`; `by` names both. The model reads `note`;
    `args` are the arguments as the person edited them. `choice` is the number, from 0, of what the session or always
    shall cover, `expires` until when, in seconds since the epoch, and `uses` how often in the session, this call
    included. `only` are the paths, or folders, of the changes to keep, of those that a command makes; None for all.
    `know` keeps the recipients of the question as known ones."""

    granted: bool
    by: str = ""
    scope: Scope = Scope.ONCE
    note: str = ""
    args: Mapping[str, Any] | None = None
    digest: str = ""
    choice: int = 0
    expires: float | None = None
    uses: int | None = None
    only: tuple[str, ...] | None = None
    know: bool = False
    channel: str = ""
    approver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A grant that the road may act on. `remembered` says where an "always" was written, `problem` why it was not.

    `binding` names the approved call, so that the same call can continue after its tool has asked for input; it is
    empty if the person edited the arguments. `only` are the paths of the changes that may be kept; None for all.
    """

    by: str
    scope: Scope
    note: str = ""
    args: Mapping[str, Any] | None = None
    digest: str = ""
    binding: str = ""
    remembered: str = ""
    problem: str = ""
    only: tuple[str, ...] | None = None
    know: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Request:
    """One question to a person. The arguments are a copy, so what was shown cannot change afterwards.

    `binding` is the same when the same question is asked again, so that an answer can arrive with a later request.
    `lasting` is the narrowest rule that "always" would write, as text; empty if nothing can be written. `choices` are
    what a yes for longer may cover, narrowest first; the first is exactly this call. `preview` is a diff of
    what the call would change. `grounds` is the tool's own assessment of this call, if it has one.
    `defaults` are the arguments that were not given. `tried` means that the call has run on trial and the question is
    whether its changes are kept: other arguments would need another trial. `client` is the program that called,
    `approvals` how many people must allow the call, `withheld` why it cannot be allowed for always. `facts` is what
    else a person is shown, as JSON data: parts of a command, changed files, the origin of values.
    """

    id: str
    call_id: str
    tool: str
    danger: DangerLevel
    args: Mapping[str, Any]
    effects: tuple[Effect, ...]
    session: str
    principal: Principal
    origin: str
    verdict: Verdict
    digest: str
    binding: str = ""
    preview: str = ""
    lasting: str = ""
    grounds: str = ""
    timeout: float = 60.0
    defaults: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    tried: bool = False
    client: str = ""
    workspace: str = ""
    approvals: int = 1
    withheld: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Request {self.id}: {self.tool!r}, {self.danger.value}>"

    @property
    def heading(self) -> str:
        """The tool and its danger, in a line."""
        return f"Tool {self.tool!r} (danger={self.danger.value})"

    @property
    def knowable(self) -> tuple[str, ...]:
        """The recipients that nobody vouches for and that a yes may keep as known ones."""
        if self.approvals > 1:
            return ()
        found = [each["value"] for each in self.facts.get("provenance", ()) if each.get("knowable")]
        return tuple(dict.fromkeys(found))

    @property
    def aside(self) -> str:
        """The tool's assessment in parentheses, to be appended to a message."""
        return f" ({self.grounds})" if self.grounds else ""

    def allow(
        self,
        *,
        by: str = "",
        scope: Scope | str = Scope.ONCE,
        note: str = "",
        args: Mapping[str, Any] | None = None,
        choice: int = 0,
        expires: float | None = None,
        uses: int | None = None,
        only: Iterable[str] | None = None,
        know: bool = False,
    ) -> Answer:
        """The answer that allows the call: once, for the session, or always. With `only`, of the changes that a command
        makes, those at or below these paths are kept, this once; they are absolute or relative to the workspace. With
        `know`, the `knowable` recipients are not asked about again for this tool and user."""
        return Answer(
            granted=True,
            by=by,
            scope=Scope(scope),
            note=note,
            args=args,
            digest=self.digest,
            choice=choice,
            expires=expires,
            uses=uses,
            only=None if only is None else tuple(only),
            know=know,
        )

    def deny(self, *, by: str = "", note: str = "") -> Answer:
        """The answer that refuses the call. The model reads `note`."""
        return Answer(granted=False, by=by, note=note, digest=self.digest)


def pose(
    action: Action,
    verdict: Verdict,
    *,
    version: str,
    timeout: float,
    preview: str = "",
    lasting: str = "",
    choices: Sequence[Choice] = (),
    withheld: str = "",
    facts: Mapping[str, Any] | None = None,
) -> Request:
    number = new_question_id()
    return Request(
        id=number,
        call_id=action.call.id,
        tool=action.spec.name,
        danger=action.danger,
        args=copy.deepcopy(_required_first(action)),
        defaults=_defaults(action),
        effects=tuple(action.effects),
        session=action.call.session,
        principal=action.call.principal,
        origin=action.call.origin,
        verdict=verdict,
        digest=digest(action, version=version, request=number),
        binding=digest(action, version=version),
        preview=preview,
        lasting=lasting,
        grounds=grounds_of(action),
        timeout=timeout,
        choices=tuple(choices),
        tried=action.tried,
        client=action.call.client,
        workspace=action.root,
        approvals=verdict.approvals,
        withheld=withheld,
        facts=facts or {},
    )


def _required_first(action: Action) -> dict[str, Any]:
    """What must be given stands before what may be left out."""
    required = action.spec.input.get("required", ())
    return dict(sorted(action.args.items(), key=lambda each: each[0] not in required))


def _defaults(action: Action) -> tuple[str, ...]:
    """The arguments that nobody gave: they have the value that the tool declares."""
    properties = action.spec.input.get("properties", {})
    return tuple(
        name
        for name, value in action.args.items()
        if name not in action.call.args and properties.get(name, {}).get("default", ...) == value
    )


def grounds_of(action: Action) -> str:
    return action.tool.grounds(action.args).reason if action.tool.grounds else ""


def digest(action: Action, *, version: str, request: str = "") -> str:
    """Identifies one question about the action; without `request`, every question about it."""
    call = action.call
    return fingerprint(
        request,
        definition(action.spec),
        action.args,
        [f"{effect} {effect.reach}" for effect in action.effects],
        action.danger.value,
        call.session,
        call.principal.user,
        call.principal.role.value,
        version,
        *([action.manifest] if action.manifest else ()),
    )


def definition(spec: ToolSpec) -> str:
    """Changes whenever the tool's name, description, schema, danger or origin does."""
    return fingerprint(spec.name, spec.description, spec.input, spec.danger.value, spec.server, spec.source)


def fingerprint(*parts: Any) -> str:
    """A hash of JSON-like values, independent of key order."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)
