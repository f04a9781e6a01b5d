"""Governor files: read into settings, or refused with every problem."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolreeve.approval.governors import GovernorSettings, GovernorSpec
from toolreeve.approval.strict_reader import StrictReader
from toolreeve.core.documents import Document, KeyPath, read_document
from toolreeve.core.errors import ConfigError, ConfigErrors

Expand = Callable[[str], str]
"""Replaces `${VAR}` and `${secret:NAME}`. Raises ConfigError if there is no such value."""
_KEYS = ("permission_governors", "output_governors", "permission_settings", "output_settings")
_GOVERNOR_KEYS = ("id", "type", "command", "url", "headers", "timeout_ms", "requires_manual")
_TYPES = ("script", "http", "python")
_NEEDED = {"script": "command", "http": "url", "python": "command"}
_AUTO_DECISIONS = ("", "all_approve")
MOST_ITERATIONS = 20


def read_governors(path: Path, expand: Expand = str) -> GovernorSettings:
    """Raises ConfigErrors with the line of every problem."""
    try:
        document = read_document(path)
    except ConfigError as problem:
        raise ConfigErrors([problem]) from None
    return parse_governors(document, expand)


def parse_governors(document: Document, expand: Expand = str) -> GovernorSettings:
    reader = _GovernorReader(document, expand)
    settings = reader.settings()
    if reader.problems:
        raise ConfigErrors(reader.problems)
    return settings


class _GovernorReader(StrictReader):
    def __init__(self, document: Document, expand: Expand) -> None:
        super().__init__(document)
        self._expand = expand

    def settings(self) -> GovernorSettings:
        whole = self.table(self.document.value, _KEYS, ())
        permission = self.table(
            whole.get("permission_settings"), ("stop_on_first_reject", "auto_decision"), ("permission_settings",)
        )
        output = self.table(whole.get("output_settings"), ("max_iterations",), ("output_settings",))
        decision = self.text(permission, "auto_decision", ("permission_settings",))
        if decision not in _AUTO_DECISIONS:
            self.complain(
                f"auto_decision {decision!r} is not known",
                ("permission_settings", "auto_decision"),
                "write all_approve",
            )
        iterations = self.count(output, "max_iterations", ("output_settings",), default=3, least=0)
        if iterations > MOST_ITERATIONS:
            self.complain(f"must be at most {MOST_ITERATIONS}", ("output_settings", "max_iterations"))
        settings = GovernorSettings(
            permission=self._governors(whole, "permission_governors"),
            output=self._governors(whole, "output_governors"),
            stop_on_first_reject=self.flag(permission, "stop_on_first_reject", ("permission_settings",), default=True),
            auto_decision=decision,
            max_iterations=iterations,
        )
        self._check_ids(settings)
        return settings

    def _governors(self, whole: Mapping[str, Any], key: str) -> tuple[GovernorSpec, ...]:
        value = whole.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.complain("must be a list of governors", (key,), "begin each with `- id: NAME`")
            return ()
        found = [self._governor(each, (key, index)) for index, each in enumerate(value)]
        return tuple(spec for spec in found if spec is not None)

    def _governor(self, value: Any, at: KeyPath) -> GovernorSpec | None:
        before = len(self.problems)
        table = self.table(value, _GOVERNOR_KEYS, at)
        kind = table.get("type")
        if kind not in _TYPES:
            self.complain(f"type {kind!r} is not one of {', '.join(_TYPES)}", (*at, "type"))
            return None
        needed = _NEEDED[kind]
        if needed not in table:
            self.complain(f"a governor of type {kind} needs {needed!r}", at)
        for other in ("command", "url", "headers"):
            if other in table and other != needed and not (kind == "http" and other == "headers"):
                self.complain(f"a governor of type {kind} has no {other!r}", (*at, other))
        command = self.texts(table, "command", at) if "command" in table else ()
        if kind == "python" and (len(command) != 1 or ":" not in command[0]):
            self.complain("must be one import path", (*at, "command"), "write [package.module:function]")
        spec = GovernorSpec(
            id=self.text(table, "id", at, required=True),
            type=kind,
            command=command,
            url=self.text(table, "url", at),
            headers=self._headers(table.get("headers"), (*at, "headers")),
            timeout_ms=self.count(table, "timeout_ms", at, default=5000, least=1),
            requires_manual=self.flag(table, "requires_manual", at, default=False),
        )
        return spec if len(self.problems) == before else None

    def _headers(self, value: Any, at: KeyPath) -> Mapping[str, str]:
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(each, str) for pair in value.items() for each in pair):
            self.complain("must be a table of texts", at)
            return {}
        try:
            return {name: self._expand(text) for name, text in value.items()}
        except ConfigError as problem:
            self.complain(problem.problem, at, problem.fix)
            return {}

    def _check_ids(self, settings: GovernorSettings) -> None:
        for governors in (settings.permission, settings.output):
            names = [each.id for each in governors]
            if twice := {name for name in names if names.count(name) > 1}:
                self.complain(f"id {sorted(twice)[0]!r} is used twice", ())
