"""The quality tools on small real projects, run by the real tools in the real sandbox."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.tools.approving_runtime import ApprovingRuntime, approving_runtime
from tests.world import World
from toolreeve.config import Quality, Sandbox
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.core.tool import bind
from toolreeve.tools.quality import QUALITY_TOOLS, run_format

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

from sums import add


def test_adding() -> None:
    assert add(1, 2) == 3


def test_wrongly() -> None:
    assert add(1, 2) == 4


@pytest.mark.skip
def test_later() -> None:
    pass
"""
NODE_TESTS = """
import { expect, test } from "vitest";
import { add } from "./sums.js";
test("adding", () => expect(add(1, 2)).toBe(3));
test("wrongly", () => expect(add(1, 2)).toBe(4));
test.skip("later", () => {});
"""


@pytest.fixture(scope="session")
def toolchain() -> Path:
    """The Node programs; put there once."""
    subprocess.run([ROOT / ".ci/node"], check=True)
    return ROOT / ".node"


def with_node(toolchain: Path) -> dict[str, Any]:
    return {"sandbox": Sandbox(readable=(str(toolchain),))}


def python_project(
    runtime: ApprovingRuntime, *, settings: str = "", sums: str = "def add(a: int, b: int) -> int:\n    return a + b\n"
) -> None:
    runtime.write("pyproject.toml", f'[project]\nname = "sums"\nversion = "1.0"\n{settings}')
    runtime.write("sums.py", sums)


def node_project(runtime: ApprovingRuntime, toolchain: Path, **manifest: Any) -> None:
    runtime.write("package.json", json.dumps({"name": "sums", "private": True, "type": "module", **manifest}))
    runtime.write("sums.js", "export const add = (a, b) => a + b;\n")
    (runtime.root / "node_modules").symlink_to(toolchain / "node_modules")


def counts(data: Any, *names: str) -> dict[str, Any]:
    return {name: data[name] for name in names}


def test_each_has_its_danger_and_checking_the_format_is_safe() -> None:
    assert {tool.name: tool.spec.danger for tool in QUALITY_TOOLS} == dict.fromkeys(
        ("run_tests", "run_lint", "run_format", "run_typecheck", "run_build"), DangerLevel.MEDIUM
    )
    assert bind(run_format).danger({}) is DangerLevel.SAFE
    assert bind(run_format).danger({"check_only": False}) is DangerLevel.MEDIUM


async def test_tests_of_a_python_project_are_counted(world: World) -> None:
    async with approving_runtime(world) as runtime:
        python_project(runtime)
        runtime.write("test_sums.py", TESTS)
        result = await runtime.call("run_tests", target="backend")

    assert result.error is not None
    assert (result.error.code, result.error.message) == (
        ErrorCode.TOOL_EXEC,
        "pytest: 1 passed, 1 failed, 1 skipped",
    )
    assert result.data is not None
    assert counts(result.data, "passed", "failed", "errors", "skipped", "exit_code") == {
        "passed": 1,
        "failed": 1,
        "errors": 0,
        "skipped": 1,
        "exit_code": 1,
    }
    assert "test_wrongly" in result.data["stdout"]
    assert (result.meta.sandbox, result.meta.command, runtime.asked) == ("full", "pytest", [])


async def test_tests_of_one_file_run_alone_and_no_tests_are_no_success(world: World) -> None:
    async with approving_runtime(world) as runtime:
        python_project(runtime)
        runtime.write("test_sums.py", TESTS)
        runtime.write("tests/test_good.py", "def test_good() -> None:\n    pass\n")
        runtime.write("none/test_none.py", "")

        assert (await runtime.data("run_tests", target="tests/test_good.py"))["passed"] == 1
        assert await runtime.failure("run_tests", target="none") == (ErrorCode.TOOL_EXEC, "pytest: no tests were found")


async def test_a_python_project_is_linted_and_type_checked(world: World) -> None:
    async with approving_runtime(world) as runtime:
        python_project(
            runtime,
            settings='[tool.ruff.lint]\nselect = ["F"]\n',
            sums="import os\n\n\ndef add(a: int) -> str:\n    return a\n",
        )
        linted, checked = await runtime.call("run_lint"), await runtime.call("run_typecheck")

        assert linted.data is not None
        assert checked.data is not None
        assert counts(linted.data, "issues", "files") == {"issues": 1, "files": 1}
        assert counts(checked.data, "issues", "files") == {"issues": 1, "files": 1}
        python_project(runtime)
        assert counts(await runtime.data("run_lint"), "issues", "exit_code") == {"issues": 0, "exit_code": 0}
        assert counts(await runtime.data("run_typecheck"), "issues", "exit_code") == {"issues": 0, "exit_code": 0}


@pytest.mark.parametrize(("settings", "tool"), [("", "ruff"), ("[tool.black]\n", "black")])
async def test_a_python_project_is_formatted_by_its_own_formatter(world: World, settings: str, tool: str) -> None:
    async with approving_runtime(world) as runtime:
        python_project(runtime, settings=settings, sums="def add(a,b):\n  return a+b\n")
        checked = await runtime.call("run_format")
        assert runtime.asked == []
        formatted = await runtime.data("run_format", check_only=False)
        again = await runtime.data("run_format")

        assert checked.error is not None
        assert checked.error.message == f"{tool}: 1 issue, 1 file"
        assert formatted["issues"] == 1
        assert again["issues"] == 0
        assert (runtime.root / "sums.py").read_text() == "def add(a, b):\n    return a + b\n"


async def test_what_only_checks_cannot_write_whatever_it_runs(world: World) -> None:
    """The project brings a formatter of its own, which changes files and asks nobody."""
    async with approving_runtime(world) as runtime:
        python_project(runtime, settings="[tool.black]\n")
        script = f"#!/bin/sh\necho changed > {runtime.root}/sums.py\ntouch {runtime.root}/pwned\necho it ran\n"
        runtime.write(".venv/bin/black", script).chmod(0o755)
        before = (runtime.root / "sums.py").read_text()
        data = (await runtime.call("run_format")).data

        assert data is not None
        assert "it ran" in data["stdout"]
        assert (runtime.root / "sums.py").read_text() == before
        assert not (runtime.root / "pwned").exists()


async def test_pyright_checks_where_it_is_configured(world: World, toolchain: Path) -> None:
    async with approving_runtime(world, **with_node(toolchain)) as runtime:
        python_project(runtime, settings="[tool.pyright]\n", sums='x: int = "a"\n')
        result = await runtime.call("run_typecheck", target="backend")

    assert result.data is not None, result.to_text()
    assert counts(result.data, "issues", "errors", "files") == {"issues": 1, "errors": 1, "files": 1}


async def test_a_python_project_is_built(world: World) -> None:
    build = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    async with approving_runtime(world) as runtime:
        python_project(runtime, settings=f'{build}[tool.hatch.build.targets.wheel]\ninclude = ["sums.py"]\n')
        await runtime.data("run_build")

        assert [path.suffix for path in (runtime.root / "dist").iterdir()] == [".whl"]


async def test_tests_of_a_node_project_are_counted(world: World, toolchain: Path) -> None:
    async with approving_runtime(world, **with_node(toolchain)) as runtime:
        node_project(runtime, toolchain, scripts={"test": "vitest run"})
        runtime.write("sums.test.js", NODE_TESTS)
        by_script = await runtime.call("run_tests", target="frontend")
        node_manifest = {"name": "sums", "type": "module", "devDependencies": {"vitest": "*"}}
        runtime.write("package.json", json.dumps(node_manifest))
        by_itself = await runtime.call("run_tests", target="frontend")

    for result, tool in ((by_script, "npm test"), (by_itself, "vitest")):
        assert result.error is not None
        assert result.error.message == f"{tool}: 1 passed, 1 failed, 1 skipped"


async def test_a_node_project_is_linted_formatted_type_checked_and_built(world: World, toolchain: Path) -> None:
    async with approving_runtime(world, **with_node(toolchain)) as runtime:
        used = dict.fromkeys(("eslint", "prettier", "typescript"), "*")
        node_project(runtime, toolchain, devDependencies=used)
        runtime.write(
            "eslint.config.js", 'export default [{ rules: { "no-unused-vars": "error", "no-var": "warn" } }];\n'
        )
        runtime.write(".prettierignore", "*.json\n")
        options = '{ "outDir": "out", "types": [], "lib": ["es5"] }'
        runtime.write("tsconfig.json", f'{{ "compilerOptions": {options}, "include": ["src"] }}\n')
        runtime.write("src/a.ts", 'export const x: number = "a";\n')
        runtime.write("odd.js", "var y=1\n")

        linted = await runtime.call("run_lint", target="frontend")
        checked = await runtime.call("run_typecheck")
        unformatted = await runtime.call("run_format", target="frontend")
        await runtime.data("run_format", target="frontend", check_only=False)
        built = await runtime.call("run_build", target="frontend")

        assert linted.error is not None
        assert linted.error.message == "eslint: 2 issues, 1 error, 1 warning, 1 file"
        assert checked.error is not None
        assert checked.error.message == "tsc: 1 issue, 1 file"
        assert unformatted.data is not None
        assert unformatted.data["issues"] == 1
        assert (runtime.root / "odd.js").read_text() == "var y = 1;\n"
        assert built.error is not None
        runtime.write("src/a.ts", "export const x: number = 1;\n")
        await runtime.data("run_build", target="frontend")
        assert (runtime.root / "out/a.js").exists()


async def test_all_runs_both_halves_and_reports_each(world: World, toolchain: Path) -> None:
    async with approving_runtime(world, **with_node(toolchain)) as runtime:
        runtime.write("backend/test_a.py", "def test_a() -> None:\n    pass\n")
        runtime.write("web/package.json", json.dumps({"scripts": {"test": "node --test"}}))
        runtime.write("web/a.test.js", "require('node:test')('a', () => { throw new Error('bad') });\n")
        result = await runtime.call("run_tests")

    assert result.error is not None
    assert result.error.message == "npm test: 1 failed"
    assert result.data is not None
    assert counts(result.data, "passed", "failed") == {"passed": 1, "failed": 1}
    runs = [counts(run, "tool", "directory", "exit_code") for run in result.data["runs"]]
    assert runs == [
        {"tool": "pytest", "directory": "backend", "exit_code": 0},
        {"tool": "npm test", "directory": "web", "exit_code": 1},
    ]


async def test_commands_that_a_person_set_run_instead(world: World) -> None:
    settings = Quality(tests=("echo '2 passed in 0.1s'", "echo '1 passed, 1 skipped in 0.1s'"), lint=("echo a | cat",))
    async with approving_runtime(world, quality=settings) as runtime:
        data = await runtime.data("run_tests")

        assert counts(data, "passed", "skipped") == {"passed": 3, "skipped": 1}
        assert (await runtime.failure("run_lint"))[0] is ErrorCode.CMD_NOT_ALLOWED


async def test_what_is_missing_is_said_with_what_to_do(world: World) -> None:
    async with approving_runtime(world) as runtime:
        assert (await runtime.failure("run_tests"))[0] is ErrorCode.PATH_NOT_FOUND
        runtime.write("package.json", json.dumps({"devDependencies": {"jest": "*"}}))
        nothing = await runtime.call("run_lint")
        missing = await runtime.call("run_tests")

        assert nothing.error is not None
        assert "no command for lint was found" in nothing.error.message
        assert "quality.lint" in nothing.error.suggestions[0]
        assert missing.error is not None
        assert "'jest' cannot be started" in missing.error.message
        assert "quality.tests" in missing.error.suggestions[0]
        assert runtime.asked == []


async def test_a_project_has_only_so_much_time(world: World) -> None:
    async with approving_runtime(world, quality=Quality(timeout=1.0)) as runtime:
        python_project(runtime)
        runtime.write("test_slow.py", "import time\n\n\ndef test_slow() -> None:\n    time.sleep(60)\n")

        assert (await runtime.failure("run_tests"))[0] is ErrorCode.TIMEOUT
