import json
from pathlib import Path

import pytest

from tests.tools.file_tools import FileTools
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.tools.projects import find
from toolreeve.tools.quality_commands import Purpose, steps

ALL: tuple[Purpose, ...] = ("tests", "lint", "format_check", "typecheck", "build")


def commands(file_tools: FileTools, purpose: Purpose, target: str = "all") -> list[str]:
    """What would run, each with the directory it runs in, from the workspace on."""
    found = [step for project in find(file_tools.files, target) for step in steps(purpose, project)]
    return [f"{file_tools.files.relative(step.directory)}: {' '.join(step.argv)}" for step in found]


def package(file_tools: FileTools, path: str = "package.json", **content: object) -> None:
    file_tools.write(path, json.dumps(content))


def test_a_python_project_is_tested_linted_formatted_and_checked_by_the_usual_tools(file_tools: FileTools) -> None:
    file_tools.write("pyproject.toml", '[build-system]\nrequires = ["hatchling"]\n')

    assert [commands(file_tools, purpose)[0] for purpose in ALL] == [
        ".: pytest",
        ".: ruff check --output-format=concise .",
        ".: ruff format --check .",
        ".: mypy .",
        ".: python3 -m pip wheel . --no-deps --no-build-isolation --wheel-dir dist",
    ]


def test_what_pyproject_configures_is_what_runs(file_tools: FileTools) -> None:
    file_tools.write("pyproject.toml", "[tool.black]\nline-length = 100\n[tool.pyright]\nstrict = ['.']\n")

    assert commands(file_tools, "format") == [".: black ."]
    assert commands(file_tools, "typecheck") == [".: pyright"]


def test_mypy_is_left_to_its_own_settings_where_they_name_files(file_tools: FileTools) -> None:
    file_tools.write("pyproject.toml", "[tool.mypy]\nfiles = ['src']\n")

    assert commands(file_tools, "typecheck") == [".: mypy"]


def test_loose_python_files_are_a_project_too(file_tools: FileTools) -> None:
    file_tools.write("tool.py")

    assert commands(file_tools, "tests") == [".: pytest"]
    assert commands(file_tools, "build")[0].startswith(".: python3 -m compileall")


def test_a_node_projects_own_scripts_come_first(file_tools: FileTools) -> None:
    scripts = {"test": "vitest run", "lint": "eslint src", "typecheck": "tsc --noEmit", "build": "vite build"}
    package(file_tools, scripts=scripts, devDependencies={"prettier": "3"})

    assert [commands(file_tools, purpose)[0] for purpose in ALL] == [
        ".: npm run test",
        ".: npm run lint",
        ".: prettier --check .",
        ".: npm run typecheck",
        ".: npm run build",
    ]


def test_without_scripts_what_is_installed_runs(file_tools: FileTools) -> None:
    package(file_tools, devDependencies={"vitest": "3", "eslint": "9", "prettier": "3", "typescript": "5"})
    file_tools.write("tsconfig.json", "{}")
    file_tools.write("node_modules/.bin/tsc", "")

    assert [commands(file_tools, purpose)[0] for purpose in ALL] == [
        ".: vitest run",
        ".: eslint .",
        ".: prettier --check .",
        f".: {file_tools.root}/node_modules/.bin/tsc --noEmit --pretty false",
        f".: {file_tools.root}/node_modules/.bin/tsc --pretty false",
    ]


@pytest.mark.parametrize(
    ("lock", "runner"), [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("package-lock.json", "npm")]
)
def test_scripts_are_run_by_the_projects_package_manager(file_tools: FileTools, lock: str, runner: str) -> None:
    package(file_tools, scripts={"test": "x"})
    file_tools.write(lock)

    assert commands(file_tools, "tests") == [f".: {runner} run test"]


def test_the_placeholder_of_npm_init_is_no_test(file_tools: FileTools) -> None:
    package(file_tools, scripts={"test": 'echo "Error: no test specified" && exit 1'})

    assert commands(file_tools, "tests") == []


def test_backend_and_frontend_are_found_below_the_workspace(file_tools: FileTools) -> None:
    file_tools.write("backend/pyproject.toml")
    package(file_tools, "web/package.json", scripts={"test": "x"})

    assert commands(file_tools, "tests", "all") == ["backend: pytest", "web: npm run test"]
    assert commands(file_tools, "tests", "backend") == ["backend: pytest"]
    assert commands(file_tools, "tests", "frontend") == ["web: npm run test"]


def test_a_path_means_the_project_around_it_and_of_it_only_that_path(file_tools: FileTools) -> None:
    file_tools.write("services/pay/pyproject.toml")
    file_tools.write("services/pay/tests/unit/test_a.py")
    package(file_tools, "services/pay/package.json", devDependencies={"eslint": "9"})
    file_tools.write("services/pay/src/a.ts")

    assert commands(file_tools, "tests", "services/pay/tests/unit/test_a.py") == [
        "services/pay: pytest tests/unit/test_a.py"
    ]
    assert commands(file_tools, "tests", "services/pay/tests") == ["services/pay: pytest tests"]
    assert commands(file_tools, "lint", "services/pay/src/a.ts") == ["services/pay: eslint src/a.ts"]
    assert commands(file_tools, "tests", "services/pay") == ["services/pay: pytest"]


def test_the_programs_of_the_projects_own_environment_are_used(file_tools: FileTools) -> None:
    file_tools.write("backend/pyproject.toml")
    file_tools.write("backend/.venv/bin/pytest")

    assert commands(file_tools, "tests") == [f"backend: {file_tools.root}/backend/.venv/bin/pytest"]


def test_a_program_in_a_folder_that_leads_outside_is_not_looked_for(file_tools: FileTools, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/pytest").write_text("")
    file_tools.write("pyproject.toml")
    (file_tools.root / ".venv").mkdir()
    (file_tools.root / ".venv/bin").symlink_to(tmp_path / "elsewhere")

    assert commands(file_tools, "tests") == [".: pytest"]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("backend", ErrorCode.PATH_NOT_FOUND),
        ("all", ErrorCode.PATH_NOT_FOUND),
        ("nowhere", ErrorCode.PATH_NOT_FOUND),
        ("..", ErrorCode.PATH_FORBIDDEN),
        ("/etc", ErrorCode.PATH_FORBIDDEN),
    ],
)
def test_a_target_that_is_no_project_is_refused(file_tools: FileTools, target: str, code: ErrorCode) -> None:
    with pytest.raises(ToolError) as caught:
        find(file_tools.files, target)

    assert caught.value.code is code


@pytest.mark.parametrize(("name", "content"), [("pyproject.toml", "[tool"), ("package.json", "{")])
def test_a_manifest_that_cannot_be_read_is_named(file_tools: FileTools, name: str, content: str) -> None:
    file_tools.write(name, content)

    with pytest.raises(ToolError, match=name):
        find(file_tools.files, "all")


@pytest.mark.parametrize("content", ["[]", '{"scripts": 3}', '{"scripts": {"test": null}, "devDependencies": []}'])
def test_a_manifest_of_an_unexpected_shape_names_nothing_to_run(file_tools: FileTools, content: str) -> None:
    file_tools.write("package.json", content)

    assert [commands(file_tools, purpose) for purpose in ALL] == [[]] * 5
