"""Detects the programs that test, lint, format, type-check or build a project.

A Node project's own scripts come first, then the tool that is configured or installed, then the usual one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from toolreeve.tools.projects import Project

Purpose = Literal["tests", "lint", "format", "format_check", "typecheck", "build"]
Counts = dict[str, int]


class QualityStep(NamedTuple):
    """`tool` names the program in results."""

    tool: str
    argv: tuple[str, ...]
    directory: str


def steps(purpose: Purpose, project: Project) -> list[QualityStep]:
    """The commands in order; none if the project has nothing for this purpose."""
    found = _CHOICES[project.language, purpose](project)
    if found is None:
        return []
    tool, *arguments = found
    program = project.program(tool) if tool not in _RUNNERS else tool
    named = f"{tool} {arguments[1]}" if tool in _RUNNERS else tool
    return [QualityStep(named, (program, *arguments), project.directory)]


_RUNNERS = ("npm", "pnpm", "yarn")
Command = list[str] | None


def _tools(project: Project) -> Mapping[str, Any]:
    table = project.manifest.get("tool", {})
    return table if isinstance(table, dict) else {}


def _here(project: Project) -> str:
    return project.within or "."


def _pytest(project: Project) -> Command:
    return ["pytest", *([project.within] if project.within else [])]


def _ruff(project: Project) -> Command:
    return ["ruff", "check", "--output-format=concise", _here(project)]


def _python_format(project: Project, *, check: bool) -> Command:
    option = ["--check"] if check else []
    tools = _tools(project)
    if "black" in tools or ("black" in project.programs and "ruff" not in tools):
        return ["black", *option, _here(project)]
    return ["ruff", "format", *option, _here(project)]


def _python_types(project: Project) -> Command:
    tools = _tools(project)
    if "pyright" in tools or "pyrightconfig.json" in project.entries:
        return ["pyright", *([project.within] if project.within else [])]
    own = tools.get("mypy")
    named = isinstance(own, dict) and any(own.get(key) for key in ("files", "packages", "modules"))
    return ["mypy", *([] if named and not project.within else [_here(project)])]


def _python_build(project: Project) -> Command:
    """A wheel if the project can be built, otherwise every file must at least compile."""
    if "build-system" in project.manifest or "setup.py" in project.entries:
        return ["python3", "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist"]
    return ["python3", "-m", "compileall", "-q", "-x", r"/(\.venv|venv|node_modules)/", _here(project)]


def _scripts(project: Project) -> Mapping[str, Any]:
    scripts = project.manifest.get("scripts", {})
    return scripts if isinstance(scripts, dict) else {}


def _runner(project: Project) -> str:
    said = str(project.manifest.get("packageManager", "")).partition("@")[0]
    if said in _RUNNERS:
        return said
    if "pnpm-lock.yaml" in project.entries:
        return "pnpm"
    return "yarn" if "yarn.lock" in project.entries else "npm"


def _script(project: Project, *names: str) -> Command:
    """The first of these scripts that the project has, limited to the part of the project that is meant."""
    scripts = {name: text for name, text in _scripts(project).items() if isinstance(text, str) and text.strip()}
    name = next((name for name in names if name in scripts), None)
    if name is None or "no test specified" in scripts[name]:
        return None
    rest = ["--", project.within] if project.within else []
    return [_runner(project), "run", name, *rest]


def _uses(project: Project, tool: str, package: str = "") -> bool:
    if tool in project.programs:
        return True
    named = (project.manifest.get(key, {}) for key in ("dependencies", "devDependencies"))
    return any(isinstance(each, dict) and (package or tool) in each for each in named)


def _node_tests(project: Project) -> Command:
    within = [project.within] if project.within else []
    if found := _script(project, "test", "tests"):
        return found
    if _uses(project, "vitest"):
        return ["vitest", "run", *within]
    return ["jest", *within] if _uses(project, "jest") else None


def _eslint(project: Project) -> Command:
    if not project.within and (found := _script(project, "lint")):
        return found
    return ["eslint", _here(project)] if _uses(project, "eslint") else None


def _prettier(project: Project, *, check: bool) -> Command:
    """Not a script of the project: its name does not say whether it only checks."""
    option = "--check" if check else "--write"
    return ["prettier", option, _here(project)] if _uses(project, "prettier") else None


def _node_types(project: Project) -> Command:
    if not project.within and (found := _script(project, "typecheck", "type-check", "check-types", "types")):
        return found
    if "tsconfig.json" in project.entries or _uses(project, "tsc", "typescript"):
        return ["tsc", "--noEmit", "--pretty", "false"]
    return None


def _node_build(project: Project) -> Command:
    if found := _script(project, "build"):
        return found
    return ["tsc", "--pretty", "false"] if "tsconfig.json" in project.entries else None


_CHOICES: Mapping[tuple[str, Purpose], Callable[[Project], Command]] = {
    ("python", "tests"): _pytest,
    ("python", "lint"): _ruff,
    ("python", "format"): lambda project: _python_format(project, check=False),
    ("python", "format_check"): lambda project: _python_format(project, check=True),
    ("python", "typecheck"): _python_types,
    ("python", "build"): _python_build,
    ("node", "tests"): _node_tests,
    ("node", "lint"): _eslint,
    ("node", "format"): lambda project: _prettier(project, check=False),
    ("node", "format_check"): lambda project: _prettier(project, check=True),
    ("node", "typecheck"): _node_types,
    ("node", "build"): _node_build,
}
