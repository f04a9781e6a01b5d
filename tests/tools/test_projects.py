import json
from pathlib import Path

import pytest

from tests.tools.desk import Desk
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.tools.projects import find
from toolreeve.tools.quality_commands import Purpose, steps

ALL: tuple[Purpose, ...] = ("tests", "lint", "format_check", "typecheck", "build")


def commands(desk: Desk, purpose: Purpose, target: str = "all") -> list[str]:
    """What would run, each with the directory it runs in, from the workspace on."""
    found = [step for project in find(desk.files, target) for step in steps(purpose, project)]
    return [f"{desk.files.relative(step.directory)}: {' '.join(step.argv)}" for step in found]


def package(desk: Desk, path: str = "package.json", **content: object) -> None:
    desk.write(path, json.dumps(content))


def test_a_python_project_is_tested_linted_formatted_and_checked_by_the_usual_tools(desk: Desk) -> None:
    desk.write("pyproject.toml", '[build-system]\nrequires = ["hatchling"]\n')

    assert [commands(desk, purpose)[0] for purpose in ALL] == [
        ".: pytest",
        ".: ruff check --output-format=concise .",
        ".: ruff format --check .",
        ".: mypy .",
        ".: python3 -m pip wheel . --no-deps --no-build-isolation --wheel-dir dist",
    ]


def test_what_pyproject_configures_is_what_runs(desk: Desk) -> None:
    desk.write("pyproject.toml", "[tool.black]\nline-length = 100\n[tool.pyright]\nstrict = ['.']\n")

    assert commands(desk, "format") == [".: black ."]
    assert commands(desk, "typecheck") == [".: pyright"]


def test_mypy_is_left_to_its_own_settings_where_they_name_files(desk: Desk) -> None:
    desk.write("pyproject.toml", "[tool.mypy]\nfiles = ['src']\n")

    assert commands(desk, "typecheck") == [".: mypy"]


def test_loose_python_files_are_a_project_too(desk: Desk) -> None:
    desk.write("tool.py")

    assert commands(desk, "tests") == [".: pytest"]
    assert commands(desk, "build")[0].startswith(".: python3 -m compileall")


def test_a_node_projects_own_scripts_come_first(desk: Desk) -> None:
    scripts = {"test": "vitest run", "lint": "eslint src", "typecheck": "tsc --noEmit", "build": "vite build"}
    package(desk, scripts=scripts, devDependencies={"prettier": "3"})

    assert [commands(desk, purpose)[0] for purpose in ALL] == [
        ".: npm run test",
        ".: npm run lint",
        ".: prettier --check .",
        ".: npm run typecheck",
        ".: npm run build",
    ]


def test_without_scripts_what_is_installed_runs(desk: Desk) -> None:
    package(desk, devDependencies={"vitest": "3", "eslint": "9", "prettier": "3", "typescript": "5"})
    desk.write("tsconfig.json", "{}")
    desk.write("node_modules/.bin/tsc", "")

    assert [commands(desk, purpose)[0] for purpose in ALL] == [
        ".: vitest run",
        ".: eslint .",
        ".: prettier --check .",
        f".: {desk.root}/node_modules/.bin/tsc --noEmit --pretty false",
        f".: {desk.root}/node_modules/.bin/tsc --pretty false",
    ]


@pytest.mark.parametrize(
    ("lock", "runner"), [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("package-lock.json", "npm")]
)
def test_scripts_are_run_by_the_projects_package_manager(desk: Desk, lock: str, runner: str) -> None:
    package(desk, scripts={"test": "x"})
    desk.write(lock)

    assert commands(desk, "tests") == [f".: {runner} run test"]


def test_the_placeholder_of_npm_init_is_no_test(desk: Desk) -> None:
    package(desk, scripts={"test": 'echo "Error: no test specified" && exit 1'})

    assert commands(desk, "tests") == []


def test_backend_and_frontend_are_found_below_the_workspace(desk: Desk) -> None:
    desk.write("backend/pyproject.toml")
    package(desk, "web/package.json", scripts={"test": "x"})

    assert commands(desk, "tests", "all") == ["backend: pytest", "web: npm run test"]
    assert commands(desk, "tests", "backend") == ["backend: pytest"]
    assert commands(desk, "tests", "frontend") == ["web: npm run test"]


def test_a_path_means_the_project_around_it_and_of_it_only_that_path(desk: Desk) -> None:
    desk.write("services/pay/pyproject.toml")
    desk.write("services/pay/tests/unit/test_a.py")
    package(desk, "services/pay/package.json", devDependencies={"eslint": "9"})
    desk.write("services/pay/src/a.ts")

    assert commands(desk, "tests", "services/pay/tests/unit/test_a.py") == ["services/pay: pytest tests/unit/test_a.py"]
    assert commands(desk, "tests", "services/pay/tests") == ["services/pay: pytest tests"]
    assert commands(desk, "lint", "services/pay/src/a.ts") == ["services/pay: eslint src/a.ts"]
    assert commands(desk, "tests", "services/pay") == ["services/pay: pytest"]


def test_the_programs_of_the_projects_own_environment_are_used(desk: Desk) -> None:
    desk.write("backend/pyproject.toml")
    desk.write("backend/.venv/bin/pytest")

    assert commands(desk, "tests") == [f"backend: {desk.root}/backend/.venv/bin/pytest"]


def test_a_program_in_a_folder_that_leads_outside_is_not_looked_for(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/pytest").write_text("")
    desk.write("pyproject.toml")
    (desk.root / ".venv").mkdir()
    (desk.root / ".venv/bin").symlink_to(tmp_path / "elsewhere")

    assert commands(desk, "tests") == [".: pytest"]


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
def test_a_target_that_is_no_project_is_refused(desk: Desk, target: str, code: ErrorCode) -> None:
    with pytest.raises(ToolError) as caught:
        find(desk.files, target)

    assert caught.value.code is code


@pytest.mark.parametrize(("name", "content"), [("pyproject.toml", "[tool"), ("package.json", "{")])
def test_a_manifest_that_cannot_be_read_is_named(desk: Desk, name: str, content: str) -> None:
    desk.write(name, content)

    with pytest.raises(ToolError, match=name):
        find(desk.files, "all")


@pytest.mark.parametrize("content", ["[]", '{"scripts": 3}', '{"scripts": {"test": null}, "devDependencies": []}'])
def test_a_manifest_of_an_unexpected_shape_names_nothing_to_run(desk: Desk, content: str) -> None:
    desk.write("package.json", content)

    assert [commands(desk, purpose) for purpose in ALL] == [[]] * 5
