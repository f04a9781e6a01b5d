"""Auto-approval policies: answers to questions that an operator wrote beforehand.

The first policy that matches answers. An approval must provably fit: every path that the call touches, resolved, and
every part of a command; for a rejection any of them is enough. No policy lifts a deny: only questions get here.
"""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolreeve.approval.options import kind_of_id
from toolreeve.approval.strict_reader import StrictReader
from toolreeve.core.action import Action
from toolreeve.core.documents import Document, KeyPath, read_document
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.core.errors import ConfigError, ConfigErrors

NAME = "auto_approval_policies"
COMMAND_PREFIX = "command_prefix"
Covers = Callable[[Mapping[str, Any], Action], bool]
"""Whether a rule, as a policy file writes it, covers the call."""
_FILE_EFFECTS = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))
_POLICY_KEYS = ("id", "applies_to", "include_paths", "exclude_paths", "parameters", "decision")
_DECISION_KEYS = ("type", "optionId", "reason", "skipGovernors")


class AutoType(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoPolicy:
    """`skip_governors`: the decision stands without asking them. `option` is the id that the policy names."""

    id: str
    applies_to: tuple[str, ...]
    include_paths: tuple[str, ...] = ()
    exclude_paths: tuple[str, ...] = ()
    parameters: Mapping[str, Any]
    type: AutoType
    option: str = ""
    reason: str = ""
    skip_governors: bool = False

    def matches(self, action: Action, covers: Covers) -> bool:
        if not any(fnmatchcase(name, pattern) for pattern in self.applies_to for name in _names(action)):
            return False
        return self._fits_paths(action, covers) and self._fits_parameters(action, covers)

    def _fits_paths(self, action: Action, covers: Covers) -> bool:
        if not self.include_paths and not self.exclude_paths:
            return True
        surely = self.type is AutoType.APPROVE
        effects = action.effects
        paths = [effect.target for effect in effects if effect.kind in _FILE_EFFECTS]
        if surely and (len(paths) < len(effects) or any(effect.reach is not Reach.EXACT for effect in effects)):
            return False
        fitting = [path for path in paths if self._fits_path(path, action.root)]
        if surely:
            return bool(paths) and len(fitting) == len(paths)
        return bool(fitting) or self._may_reach(action, covers)

    def _may_reach(self, action: Action, covers: Covers) -> bool:
        """Whether an effect beyond one path may touch one of ours: a folder stands for all that is in it."""
        if not self.include_paths or all(effect.reach is Reach.EXACT for effect in action.effects):
            return False
        target = {"glob": list(self.include_paths)}
        rule = {"tool": action.spec.name, "decision": "ask", "effect": sorted(_FILE_EFFECTS), "target": target}
        return covers(rule, action)

    def _fits_path(self, path: str, root: str) -> bool:
        included = not self.include_paths or any(_is_path(path, each, root) for each in self.include_paths)
        return included and not any(_is_path(path, each, root) for each in self.exclude_paths)

    def _fits_parameters(self, action: Action, covers: Covers) -> bool:
        for name, wanted in self.parameters.items():
            if name == COMMAND_PREFIX:
                if not self._fits_command(action, wanted, covers):
                    return False
            elif not _equals(action.args.get(name, ...), wanted):
                return False
        return True

    def _fits_command(self, action: Action, prefixes: Sequence[str], covers: Covers) -> bool:
        """An approval covers every simple command of the parsed command; a rejection suspects any that may be one."""
        rule = {"tool": action.spec.name, "program": list(prefixes)}
        if self.type is AutoType.APPROVE:
            return covers({**rule, "decision": "allow", "max_danger": action.danger.value}, action)
        return covers({**rule, "decision": "ask"}, action)


def find_policy(policies: Sequence[AutoPolicy], action: Action, covers: Covers) -> AutoPolicy | None:
    return next((policy for policy in policies if policy.matches(action, covers)), None)


def read_policies(path: Path) -> tuple[AutoPolicy, ...]:
    """Raises ConfigErrors with the line of every problem; a file with a problem yields no policy."""
    try:
        document = read_document(path)
    except ConfigError as problem:
        raise ConfigErrors([problem]) from None
    return parse_policies(document)


def parse_policies(document: Document) -> tuple[AutoPolicy, ...]:
    reader = _PolicyReader(document)
    found = reader.policies()
    if reader.problems:
        raise ConfigErrors(reader.problems)
    return found


class _PolicyReader(StrictReader):
    def policies(self) -> tuple[AutoPolicy, ...]:
        value = self.document.value
        base: KeyPath = ()
        if isinstance(value, dict):
            if unknown := [key for key in value if key != NAME]:
                self.complain(f"unknown {unknown[0]!r}", (unknown[0],), f"write a list, or `{NAME}:` above it")
            value = value.get(NAME, [])
            base = (NAME,)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.complain("must be a list of policies", base, "begin each policy with `- id: NAME`")
            return ()
        found = [self._policy(each, (*base, index)) for index, each in enumerate(value)]
        named = [policy for policy in found if policy is not None]
        self._check_ids(named, base)
        return tuple(named)

    def _policy(self, value: Any, at: KeyPath) -> AutoPolicy | None:
        if not isinstance(value, dict):
            self.complain("must be a table", at, "write id, applies_to and decision")
            return None
        before = len(self.problems)
        self.check_keys(value, _POLICY_KEYS, at)
        name = self.text(value, "id", at, required=True)
        applies = self.texts(value, "applies_to", at, required=True)
        include = self.texts(value, "include_paths", at)
        exclude = self.texts(value, "exclude_paths", at)
        parameters = self._parameters(value.get("parameters"), (*at, "parameters"))
        decision = self._decision(value.get("decision"), (*at, "decision"))
        if len(self.problems) > before:
            return None
        return AutoPolicy(
            id=name,
            applies_to=applies,
            include_paths=include,
            exclude_paths=exclude,
            parameters=parameters,
            **decision,
        )

    def _decision(self, value: Any, at: KeyPath) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.complain("a decision is missing", at, "write `decision: {type: approve}`, reject or manual")
            return {}
        self.check_keys(value, _DECISION_KEYS, at)
        kind = value.get("type")
        if kind not in set(AutoType):
            self.complain(f"type {kind!r} is not one of approve, reject, manual", (*at, "type"))
            return {}
        option = self.text(value, "optionId", at)
        meant = kind_of_id(option)
        if meant is not None and kind != AutoType.MANUAL and meant.allows != (kind == AutoType.APPROVE):
            self.complain(f"optionId {option!r} contradicts type {kind!r}", (*at, "optionId"))
        skips = value.get("skipGovernors", False)
        if not isinstance(skips, bool):
            self.complain("must be true or false", (*at, "skipGovernors"))
        return {
            "type": AutoType(kind),
            "option": option,
            "reason": self.text(value, "reason", at),
            "skip_governors": skips is True,
        }

    def _parameters(self, value: Any, at: KeyPath) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.complain("must be a table of parameters and their values", at)
            return {}
        if COMMAND_PREFIX in value:
            self.texts(value, COMMAND_PREFIX, at, required=True)
        return value

    def _check_ids(self, policies: Sequence[AutoPolicy], base: KeyPath) -> None:
        seen: set[str] = set()
        for index, policy in enumerate(policies):
            if policy.id in seen:
                self.complain(f"id {policy.id!r} is used twice", (*base, index, "id"))
            seen.add(policy.id)


def _names(action: Action) -> tuple[str, ...]:
    """The tool's own name; what the caller wrote is only another spelling of it."""
    return (action.spec.name, action.call.tool)


def _equals(value: Any, wanted: Any) -> bool:
    """Strictly: true is not 1. A list means one of its values."""
    if isinstance(wanted, list) and not isinstance(value, list):
        return any(_equals(value, each) for each in wanted)
    return type(value) is type(wanted) and bool(value == wanted)


def _is_path(path: str, pattern: str, root: str) -> bool:
    """Both absolute and normal: a relative pattern is below the workspace. `*` stays within one name, `**` does not."""
    whole = posixpath.normpath(posixpath.join(root, pattern))
    return _compiled(whole).fullmatch(posixpath.normpath(path)) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    spelled = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(spelled.get(part, re.escape(part)) for part in parts), re.DOTALL)
