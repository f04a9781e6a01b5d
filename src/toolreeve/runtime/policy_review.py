"""Reviews of the policy over recorded calls: simulation, suggestions and imports.

Reads the record and writes nothing.
"""

import asyncio
import tomllib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from toolreeve.config import Configuration
from toolreeve.config.jsonc import json_document
from toolreeve.core.documents import Document, parse_yaml
from toolreeve.core.errors import ConfigError
from toolreeve.core.trial import Confinement
from toolreeve.policy.files import parse_rules
from toolreeve.policy.importers.imported import ImportedRules
from toolreeve.policy.rules import PermissionRule
from toolreeve.policy.simulation import PastCall, Simulation, Simulator
from toolreeve.policy.state import PolicyState
from toolreeve.policy.suggestions import OFTEN, Suggestion, suggest_rules
from toolreeve.record.audit import Audit, Filter
from toolreeve.runtime.policy_source import PolicySource

ImportFormat = Literal["claude-code", "codex", "gemini", "auto-approval"]


class PolicyReview:
    """`confinements` are those that the sandbox enforces."""

    def __init__(self, configuration: Configuration, audit: Audit, confinements: Iterable[Confinement] = ()) -> None:
        self._configuration = configuration
        self._audit = audit
        self._confinements = frozenset(confinements)
        self._root = configuration.settings.workspace.dir

    async def simulate(self, new: Sequence[PermissionRule], *, since: float | None) -> Simulation:
        """What would change if these rules stood in place of the user's policy files."""
        simulator = self._simulator(self._state(self._configuration), self._state(self._without_files(), new))
        calls = [call async for call in self._calls(since)]
        return await asyncio.to_thread(simulator.run, calls)

    async def suggest(self, *, since: float | None, often: int = OFTEN) -> list[Suggestion]:
        state = self._state(self._configuration)
        calls = [call async for call in self._calls(since)]
        simulator = self._simulator(state, state)
        return await asyncio.to_thread(partial(suggest_rules, calls, state, simulator, often=often))

    def parse(self, text: str, source: str) -> Sequence[PermissionRule]:
        """Raises ConfigErrors."""
        return parse_rules(parse_yaml(text, source), root=self._root)

    def _simulator(self, present: PolicyState, new: PolicyState) -> Simulator:
        allowed = self._configuration.settings.workspace.sensitive_allow
        return Simulator(present, new, root=self._root, home=self._configuration.home, allowed=allowed)

    def _state(self, configuration: Configuration, rules: Sequence[PermissionRule] = ()) -> PolicyState:
        source = PolicySource(configuration, rules)
        source.enforce(self._confinements)
        return source()

    def _without_files(self) -> Configuration:
        settings = self._configuration.settings
        settings = replace(settings, policy=replace(settings.policy, files=()))
        return replace(
            self._configuration, settings=settings, origins={**self._configuration.origins, "policy.files": ""}
        )

    async def _calls(self, since: float | None) -> AsyncIterator[PastCall | None]:
        """The calls of this workspace."""
        wanted = Filter(kind="call", workspace=str(Path(self._root).resolve()), since=since)
        async for record in self._audit.stream(wanted):
            yield PastCall.from_record(record.call_id, record.body)


def import_rules(path: Path, form: ImportFormat, *, root: str, home: str) -> ImportedRules:
    """Raises ConfigError for a file that cannot be read."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"cannot be read: {problem}", source=path) from None
    match form:
        case "claude-code":
            from toolreeve.policy.importers.claude_code import import_claude_code

            return import_claude_code(json_document(text, str(path)).value, root=root, home=home)
        case "codex":
            from toolreeve.policy.importers.codex import import_codex

            return import_codex(text, root=root)
        case "gemini":
            from toolreeve.policy.importers.gemini import import_gemini

            return import_gemini(_toml(text, path).value, root=root)
        case "auto-approval":
            from toolreeve.policy.importers.auto_approval import import_auto_approval

            return import_auto_approval(parse_yaml(text, str(path)).value, root=root)


def guess_format(path: Path) -> ImportFormat | None:
    """By the name of the file, as each program calls it."""
    if path.suffix == ".json":
        return "claude-code"
    if path.suffix == ".rules":
        return "codex"
    if path.suffix == ".toml":
        return "gemini"
    return "auto-approval" if path.suffix in (".yaml", ".yml") else None


def _toml(text: str, path: Path) -> Document:
    try:
        return Document(str(path), tomllib.loads(text))
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"is not valid TOML: {problem}", source=path) from None
