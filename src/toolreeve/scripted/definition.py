"""Tool definitions of a YAML file, parsed strictly.

Every mistake is reported with its line, its key and a fix. A file is accepted whole or not at all, independent of other
files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolreeve.core.danger import DangerLevel
from toolreeve.core.documents import Document, read_document
from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.core.limits import Caching, CircuitBreaker, Limits, RateLimit, Retry
from toolreeve.core.process import Network, ProcessLimits
from toolreeve.core.schema import Schema
from toolreeve.scripted.error_mapping import ErrorMapping, Profile, read_mapping
from toolreeve.scripted.parameters import Parameters, read_parameters
from toolreeve.scripted.schema import TOOL
from toolreeve.scripted.shebang import ARGUMENTS, Shebang, foreign_placeholders, read_interpreter
from toolreeve.scripted.syntax import TemplateProblem, parse
from toolreeve.scripted.template import Script, compile_script

KeyPath = tuple[str | int, ...]
_ID = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}$")
_SECRET = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")
_KEY_NAME = re.compile(r"\{\{\s*[A-Za-z_][\w-]*\s*\}\}")
_LIMITS = {
    "timeout": "timeout",
    "max_memory_mb": "memory_mb",
    "max_cpu_time_seconds": "cpu_seconds",
    "max_file_size_mb": "file_size_mb",
    "max_open_files": "open_files",
    "max_processes": "processes",
    "max_output_kb": "output_kb",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSandbox:
    """The sandbox of a script. `directory` and `writable` may be relative to the workspace."""

    directory: str = "."
    private: bool = False
    writable: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    environment: Mapping[str, str]
    network: Network = "none"
    limits: ProcessLimits

    @property
    def secrets(self) -> set[str]:
        return {name for value in self.environment.values() for name in _SECRET.findall(value)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A tool as its author defined it. `script` is None if another interpreter than bash runs it."""

    id: str
    title: str
    description: str
    source: str
    text: str
    script: Script | None
    interpreter: Shebang
    parameters: Parameters
    sandbox: ScriptSandbox
    errors: ErrorMapping
    limits: Limits
    danger: DangerLevel
    read_only: bool
    idempotent: bool
    confirmation: str | None
    category: str
    tags: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...]
    estimated_cost: float


def read_definitions(path: Path, *, profile: Profile = "acp-basic") -> list[Definition]:
    """Raises ConfigError or ConfigErrors."""
    document = read_document(path)
    found: list[Definition] = []
    problems: list[ConfigError] = []
    for key, value in _tools(document):
        try:
            found.append(_DefinitionReader(document, key, value, profile).read())
        except ConfigErrors as several:
            problems += several.problems
    if problems:
        raise ConfigErrors(problems)
    return found


def _tools(document: Document) -> Iterator[tuple[KeyPath, Any]]:
    """The tools below `tools`, or at the top of a file without that key."""
    value = document.value
    if not isinstance(value, Mapping) or not value:
        raise document.error("contains no tools", fix="write `tools:` and, below it, each tool under its name")
    if "tools" not in value:
        yield from (((name,), tool) for name, tool in value.items())
        return
    if unknown := [name for name in value if name != "tools"]:
        raise document.error("unknown key", path=(unknown[0],), fix="put tools below `tools:`, and nothing beside it")
    if not isinstance(value["tools"], Mapping) or not value["tools"]:
        raise document.error("contains no tools", path=("tools",), fix="write each tool below it, under its name")
    yield from ((("tools", name), tool) for name, tool in value["tools"].items())


class _DefinitionReader:
    """Reads one tool and reports all of its problems at once."""

    def __init__(self, document: Document, path: KeyPath, value: Any, profile: Profile) -> None:
        self._document = document
        self._path = path
        self._value = value
        self._profile = profile
        self._problems: list[ConfigError] = []

    def _report(self, problem: str, *path: str | int, fix: str = "", line: int = 0) -> None:
        error = self._document.error(problem, path=(*self._path, *path), fix=fix)
        if line and error.line is not None:
            error = ConfigError(problem, source=error.source, line=error.line + line, key=error.key, fix=fix)
        self._problems.append(error)

    def read(self) -> Definition:
        self._check_shape()
        self._raise_problems()
        interpreter = self._interpreter()
        parameters = self._parameters(interpreter)
        script = self._script(parameters) if interpreter.is_bash else None
        errors = self._errors()
        limits = self._limits()
        self._check_examples(parameters)
        self._raise_problems()
        return self._definition(interpreter, parameters, script, errors, limits)

    def _raise_problems(self) -> None:
        if self._problems:
            raise ConfigErrors(self._problems)

    def _check_shape(self) -> None:
        name = str(self._path[-1])
        if not _ID.match(name):
            self._report("is not a valid tool name", fix="use letters, digits, _, -, . and /")
        value = self._value
        if isinstance(value, Mapping) and LIMITS in value:
            self._report("is not a key of a tool: limits belong under sandbox", LIMITS, fix=_LIMITS_FIX)
            value = {key: each for key, each in value.items() if key != LIMITS}
        for problem in _SHAPE.problems({"tool": value}):
            path = [int(part) if part.isdigit() else part for part in problem.pointer.split("/")[2:]]
            self._report(problem.text, *path, fix=_fix(problem.text, path))

    def _interpreter(self) -> Shebang:
        try:
            found = read_interpreter(self._value["script"])
        except TemplateProblem as problem:
            self._report_script(problem)
            raise ConfigErrors(self._problems) from None
        if found.is_bash:
            return found
        names = {each["name"] for each in self._value.get("parameters", [])}
        for line, name in foreign_placeholders(self._value["script"], names):
            fix = f"read the arguments as JSON from the file that {ARGUMENTS} names"
            text = f"{{{{{name}}}}} is not filled in: only bash scripts are templates"
            self._report_script(TemplateProblem(text, line=line, fix=fix))
        return found

    def _parameters(self, interpreter: Shebang) -> Parameters:
        try:
            nodes = parse(self._value["script"]) if interpreter.is_bash else ()
            found = read_parameters(self._value.get("parameters", []), nodes)
        except TemplateProblem as problem:
            self._report_script(problem)
            raise ConfigErrors(self._problems) from None
        for each in found.problems:
            self._report(each.text, *each.path, fix=each.fix)
        self._raise_problems()
        return found

    def _script(self, parameters: Parameters) -> Script | None:
        try:
            return compile_script(self._value["script"], parameters.rules)
        except TemplateProblem as problem:
            self._report_script(problem)
            return None

    def _report_script(self, problem: TemplateProblem) -> None:
        lines = self._value["script"].rstrip("\n").count("\n")
        line = problem.line if lines else 0
        where = f" (line {problem.line} of the script)" if lines else ""
        self._report(f"{problem.problem}{where}", "script", fix=problem.fix, line=line)

    def _errors(self) -> ErrorMapping:
        found = read_mapping(self._value.get("error_mapping", {}), self._profile)
        for code, text, fix in found.problems:
            self._report(text, "error_mapping", code, fix=fix)
        return found

    def _limits(self) -> Limits:
        value = self._value
        template = value.get("caching", {}).get("key_template")
        if template is not None and not _is_key_template(template):
            fix = "name arguments: {{url}}:{{method}}"
            self._report("does not distinguish calls", "caching", "key_template", fix=fix)
        return Limits(
            timeout=float(value.get("sandbox", {}).get("timeout", ProcessLimits().timeout)) + GRACE,
            retry=Retry(**value["retry"]) if "retry" in value else None,
            circuit_breaker=CircuitBreaker(**value["circuit_breaker"]) if "circuit_breaker" in value else None,
            caching=Caching(**value["caching"]) if "caching" in value else None,
            rate=RateLimit(**value["rate_limit"]) if "rate_limit" in value else None,
            concurrency=value.get("concurrency"),
        )

    def _check_examples(self, parameters: Parameters) -> None:
        for index, example in enumerate(self._value.get("examples", [])):
            if isinstance(example, Mapping):
                for problem in Schema(parameters.schema).problems({**parameters.defaults, **example}):
                    self._report(str(problem), "examples", index, fix="make it a valid call of the tool")

    def _definition(
        self,
        interpreter: Shebang,
        parameters: Parameters,
        script: Script | None,
        errors: ErrorMapping,
        limits: Limits,
    ) -> Definition:
        value = self._value
        name = str(self._path[-1])
        danger = _danger(value, parameters)
        read_only = bool(value.get("read_only", danger is DangerLevel.SAFE))
        title = value.get("name", name)
        examples = tuple(each for each in value.get("examples", []) if isinstance(each, Mapping))
        return Definition(
            id=name,
            title=title,
            description=value.get("description", title),
            source=self._document.source,
            text=value["script"],
            script=script,
            interpreter=interpreter,
            parameters=parameters,
            sandbox=_sandbox(value.get("sandbox", {})),
            errors=errors,
            limits=limits,
            danger=danger,
            read_only=read_only,
            idempotent=bool(value.get("idempotent", read_only or "retry" in value)),
            confirmation=_confirmation(value.get("sandbox", {}), title),
            category=value.get("category", "scripted"),
            tags=tuple(value.get("tags", ())),
            examples=examples,
            estimated_cost=float(value.get("estimated_cost", 0.0)),
        )


GRACE = 5.0
"""Seconds beyond the sandbox's own timeout, which ends a run first and keeps its output; the runtime's comes second."""

LIMITS = "resource_limits"
_LIMITS_FIX = "use sandbox: timeout, max_memory_mb, max_cpu_time_seconds, max_processes …"
_SHAPE = Schema({"type": "object", "properties": {"tool": TOOL}})


def _fix(problem: str, path: Sequence[str | int]) -> str:
    if problem.startswith("unknown"):
        return "remove it, or correct its spelling"
    if path and path[-1] == "script" and "required" in problem:
        return "write the script: script: echo {{text}}"
    return "see the guide to tools in YAML"


def _is_key_template(template: str) -> bool:
    rest = _KEY_NAME.sub("", template)
    return rest != template and "{{" not in rest and "}}" not in rest


def _danger(value: Mapping[str, Any], parameters: Parameters) -> DangerLevel:
    """With `requires_confirmation: false` and no `danger`, the tool is LOW; a parameter that is code makes it HIGH."""
    unconfirmed = value.get("sandbox", {}).get("requires_confirmation") is False
    default = DangerLevel.LOW if unconfirmed else DangerLevel.MEDIUM
    danger = DangerLevel(value["danger"]) if "danger" in value else default
    if any(rules.allow_code for rules in parameters.rules.values()):
        return max(danger, DangerLevel.HIGH)
    return danger


def _confirmation(sandbox: Mapping[str, Any], title: str) -> str | None:
    if not sandbox.get("requires_confirmation"):
        return None
    return str(sandbox.get("confirmation_message") or f"{title} needs confirmation before each run")


def _sandbox(sandbox: Mapping[str, Any]) -> ScriptSandbox:
    directory = sandbox.get("working_directory", ".")
    network: Literal["none", "guarded", "host"] = sandbox.get("network", "none")
    named = {ours: sandbox[key] for key, ours in _LIMITS.items() if key in sandbox}
    return ScriptSandbox(
        directory=directory,
        private=bool(sandbox.get("use_temp_isolation")) or _is_temporary(directory),
        writable=tuple(sandbox.get("allowed_paths", ())),
        programs=tuple(sandbox.get("allowed_commands", ())),
        environment={name: _as_text(each) for name, each in sandbox.get("environment_variables", {}).items()},
        network=network,
        limits=ProcessLimits(**named),
    )


def _is_temporary(directory: str) -> bool:
    """Every run has its own /tmp, so a script that starts there starts in a fresh directory."""
    return directory == "/tmp" or directory.startswith("/tmp/")  # noqa: S108 - a path of the author's


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_secrets(environment: Mapping[str, str], lookup: Mapping[str, str]) -> dict[str, str]:
    return {name: _SECRET.sub(lambda found: lookup[found[1]], value) for name, value in environment.items()}
