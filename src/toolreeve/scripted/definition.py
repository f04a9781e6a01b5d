"""What tools does a YAML file declare? Read strictly: every mistake is told with its line, its key and how to mend it.

A file is taken whole or not at all; other files are no concern of it.
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

Path_ = tuple[str | int, ...]
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
class SourceLocation:
    """Where a script runs, and what it finds there. `directory` and `writable` may be relative to the workspace."""

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
    """A tool as its author means it. `script` is None where another interpreter than bash reads it."""

    id: str
    title: str
    description: str
    source: str
    text: str
    script: Script | None
    interpreter: Shebang
    parameters: Parameters
    place: SourceLocation
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
            found.append(_Reader(document, key, value, profile).read())
        except ConfigErrors as several:
            problems += several.problems
    if problems:
        raise ConfigErrors(problems)
    return found


def _tools(document: Document) -> Iterator[tuple[Path_, Any]]:
    """The tools below `tools`, or at the top of a file that has no such key."""
    value = document.value
    if not isinstance(value, Mapping) or not value:
        raise document.error("holds no tools", fix="write `tools:` and, below it, each tool under its name")
    if "tools" not in value:
        yield from (((name,), tool) for name, tool in value.items())
        return
    if strange := [name for name in value if name != "tools"]:
        raise document.error("unknown key", path=(strange[0],), fix="put tools below `tools:`, and nothing beside it")
    if not isinstance(value["tools"], Mapping) or not value["tools"]:
        raise document.error("holds no tools", path=("tools",), fix="write each tool below it, under its name")
    yield from ((("tools", name), tool) for name, tool in value["tools"].items())


class _Reader:
    """One tool. Everything that is wrong with it is told at once."""

    def __init__(self, document: Document, path: Path_, value: Any, profile: Profile) -> None:
        self._document, self._path, self._value, self._profile = document, path, value, profile
        self._problems: list[ConfigError] = []

    def _complain(self, problem: str, *path: str | int, fix: str = "", line: int = 0) -> None:
        error = self._document.error(problem, path=(*self._path, *path), fix=fix)
        if line and error.line is not None:
            error = ConfigError(problem, source=error.source, line=error.line + line, key=error.key, fix=fix)
        self._problems.append(error)

    def read(self) -> Definition:
        self._check_shape()
        self._give_up_if_wrong()
        interpreter = self._interpreter()
        parameters = self._parameters(interpreter)
        script = self._script(parameters) if interpreter.is_bash else None
        errors = self._errors()
        limits = self._limits()
        self._check_examples(parameters)
        self._give_up_if_wrong()
        return self._definition(interpreter, parameters, script, errors, limits)

    def _give_up_if_wrong(self) -> None:
        if self._problems:
            raise ConfigErrors(self._problems)

    def _check_shape(self) -> None:
        name = str(self._path[-1])
        if not _ID.match(name):
            self._complain("is not a name for a tool", fix="use letters, digits, _, -, . and /")
        for problem in _SHAPE.problems({"tool": self._value}):
            path = [int(part) if part.isdigit() else part for part in problem.pointer.split("/")[2:]]
            self._complain(problem.text, *path, fix=_fix(problem.text, path))

    def _interpreter(self) -> Shebang:
        try:
            found = read_interpreter(self._value["script"])
        except TemplateProblem as problem:
            self._complain_of_script(problem)
            raise ConfigErrors(self._problems) from None
        names = {each["name"] for each in self._value.get("parameters", [])}
        for line, name in () if found.is_bash else foreign_placeholders(self._value["script"], names):
            fix = f"read the arguments as JSON from the file that {ARGUMENTS} names"
            text = f"{{{{{name}}}}} is not filled in: only bash scripts are templates"
            self._complain_of_script(TemplateProblem(text, line=line, fix=fix))
        return found

    def _parameters(self, interpreter: Shebang) -> Parameters:
        try:
            nodes = parse(self._value["script"]) if interpreter.is_bash else ()
            found = read_parameters(self._value.get("parameters", []), nodes)
        except TemplateProblem as problem:
            self._complain_of_script(problem)
            raise ConfigErrors(self._problems) from None
        for wrong in found.problems:
            self._complain(wrong.text, *wrong.path, fix=wrong.fix)
        self._give_up_if_wrong()
        return found

    def _script(self, parameters: Parameters) -> Script | None:
        try:
            return compile_script(self._value["script"], parameters.terms)
        except TemplateProblem as problem:
            self._complain_of_script(problem)
            return None

    def _complain_of_script(self, problem: TemplateProblem) -> None:
        lines = self._value["script"].rstrip("\n").count("\n")
        line = problem.line if lines else 0
        where = f" (line {problem.line} of the script)" if lines else ""
        self._complain(f"{problem.problem}{where}", "script", fix=problem.fix, line=line)

    def _errors(self) -> ErrorMapping:
        found = read_mapping(self._value.get("error_mapping", {}), self._profile)
        for code, text, fix in found.problems:
            self._complain(text, "error_mapping", code, fix=fix)
        return found

    def _limits(self) -> Limits:
        value = self._value
        template = value.get("caching", {}).get("key_template")
        if template is not None and not _is_key_template(template):
            fix = "name arguments: {{url}}:{{method}}"
            self._complain("cannot tell calls apart", "caching", "key_template", fix=fix)
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
                    self._complain(str(problem), "examples", index, fix="make it a call that the tool takes")

    def _definition(
        self,
        interpreter: Shebang,
        parameters: Parameters,
        script: Script | None,
        errors: ErrorMapping,
        limits: Limits,
    ) -> Definition:
        value, name = self._value, str(self._path[-1])
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
            place=_place(value.get("sandbox", {})),
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
"""The sandbox ends a run in time, and keeps what it printed; the road's own limit stands behind it."""

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
    """Where the author says that nobody need confirm, and nothing else, the tool counts as harmless enough to run."""
    confirmed = value.get("sandbox", {}).get("requires_confirmation")
    unsaid = DangerLevel.LOW if confirmed is False else DangerLevel.MEDIUM
    danger = DangerLevel(value["danger"]) if "danger" in value else unsaid
    if any(terms.allow_code for terms in parameters.terms.values()):
        return max(danger, DangerLevel.HIGH)
    return danger


def _confirmation(sandbox: Mapping[str, Any], title: str) -> str | None:
    if not sandbox.get("requires_confirmation"):
        return None
    return str(sandbox.get("confirmation_message") or f"{title} is to be confirmed before each run")


def _place(sandbox: Mapping[str, Any]) -> SourceLocation:
    directory = sandbox.get("working_directory", ".")
    network: Literal["none", "guarded", "host"] = sandbox.get("network", "none")
    named = {ours: sandbox[key] for key, ours in _LIMITS.items() if key in sandbox}
    return SourceLocation(
        directory=directory,
        private=bool(sandbox.get("use_temp_isolation")) or _is_temporary(directory),
        writable=tuple(sandbox.get("allowed_paths", ())),
        programs=tuple(sandbox.get("allowed_commands", ())),
        environment={name: _spelled(each) for name, each in sandbox.get("environment_variables", {}).items()},
        network=network,
        limits=ProcessLimits(**named),
    )


def _is_temporary(directory: str) -> bool:
    """Every run has a /tmp of its own, so what starts there starts in a fresh directory."""
    return directory == "/tmp" or directory.startswith("/tmp/")  # noqa: S108 - a path of the author's


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def with_secrets(environment: Mapping[str, str], lookup: Mapping[str, str]) -> dict[str, str]:
    return {name: _SECRET.sub(lambda found: lookup[found[1]], value) for name, value in environment.items()}
