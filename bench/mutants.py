"""Mutation testing of the modules that guard: are their own tests strict enough?

    python -m bench.mutants [--sample N] [--seed N] [MODULE ...]

Each mutant changes one operator or constant in a copy of the tree; it is killed when the module's own tests fail. Exits
with 1 when fewer than 90 % of a module's are killed. Nothing in the working tree is changed.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
TARGETS: dict[str, tuple[str, ...]] = {
    "policy/layers": ("tests/policy/test_layers.py", "tests/policy/test_explanation.py"),
    "policy/rules": ("tests/policy/test_rules.py", "tests/policy/test_layers.py", "tests/policy/test_files.py"),
    "approval/broker": ("tests/approval",),
    "guard/files/paths": ("tests/guard/files",),
    "guard/network/guard": ("tests/guard/network",),
    "record/sqlite/chain": (
        "tests/record/test_chain.py",
        "tests/record/test_verify.py",
        "tests/record/test_witness.py",
    ),
    "record/chain": ("tests/record/test_chain.py", "tests/record/test_verify.py", "tests/record/test_witness.py"),
    "execution/breaker": ("tests/execution/test_breaker.py",),
    "scripted/template": ("tests/scripted/test_template.py", "tests/scripted/test_syntax.py"),
    "core/secrets/redactor": ("tests/core/secrets",),
    "serve/access": ("tests/serve/test_access.py", "tests/serve/test_refusals.py"),
}
WANTED = 0.9
PATIENCE = 300
WORKERS = 2

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv}


@dataclass(frozen=True, slots=True)
class Mutant:
    module: str
    line: int
    change: str
    source: str


def mutants_of(module: str) -> list[Mutant]:
    """Every mutant of a module: one change each."""
    tree = ast.parse((ROOT / "src/toolreeve" / f"{module}.py").read_text())
    places = list(_places(tree))
    found = []
    for index, (node, change, _) in enumerate(places):
        copy = deepcopy(tree)
        list(_places(copy))[index][2]()
        found.append(Mutant(module, getattr(node, "lineno", 0), change, ast.unparse(copy)))
    return found


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Callable[[], None]]]:
    """Where something can be changed: the node, what is changed, and the function that changes it in place."""
    skipped = {id(part) for node in ast.walk(tree) for part in _not_code(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
                other = _COMPARISONS[type(operator)]
                yield node, f"{ast.unparse(node)}: {other.__name__}", _setter(node, "ops", [other()])
            case ast.BoolOp(op=ast.And()):
                yield node, f"{ast.unparse(node)}: or", _setter(node, "op", ast.Or())
            case ast.BoolOp(op=ast.Or()):
                yield node, f"{ast.unparse(node)}: and", _setter(node, "op", ast.And())
            case ast.UnaryOp(op=ast.Not()):
                yield node, f"{ast.unparse(node)}: without not", _setter(node, "op", ast.UAdd())
            case ast.If() | ast.While() | ast.IfExp():
                negated = ast.UnaryOp(op=ast.Not(), operand=node.test)
                yield node, f"if {ast.unparse(node.test)}: negated", _setter(node, "test", negated)
            case ast.Constant(value=bool() as value):
                yield node, f"{value}: {not value}", _setter(node, "value", not value)
            case ast.Constant(value=int() | float() as value):
                yield node, f"{value}: {value + 1}", _setter(node, "value", value + 1)
            case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC:
                changed = _ARITHMETIC[type(operator)]
                yield node, f"{ast.unparse(node)}: {changed.__name__}", _setter(node, "op", changed())


def _not_code(node: ast.AST) -> Iterator[ast.AST]:
    """Annotations, decorators, steps of counters, sizes of caches and of buffers: no test can tell if they change."""
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value == 1024:
        yield from ast.walk(node)
    if isinstance(node, ast.keyword) and node.arg == "maxsize":
        yield from ast.walk(node.value)
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant):
        yield node.value
    for field in ("annotation", "returns"):
        if isinstance(part := getattr(node, field, None), ast.AST):
            yield from ast.walk(part)
    for decorator in getattr(node, "decorator_list", ()):
        yield from ast.walk(decorator)


def _setter(node: ast.AST, field: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, field, value)


class Worker:
    """A copy of the tree in which one mutant at a time is tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        hidden = shutil.ignore_patterns("__pycache__", ".*")
        for name in ("src", "tests", "bench", "docs", "examples"):
            shutil.copytree(ROOT / name, folder / name, ignore=hidden)
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / name, folder)

    def passes(self, tests: Sequence[str]) -> bool:
        existing = [test for test in tests if (self.folder / test).exists()]
        environment = os.environ | {"PYTHONPATH": f"{self.folder}/src:{self.folder}"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling everything again takes longer than the tests
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", *existing]
        try:
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def kills(self, mutant: Mutant) -> bool:
        path = self.folder / "src/toolreeve" / f"{mutant.module}.py"
        original = path.read_text()
        self._replace(path, mutant.source)
        try:
            return not self.passes(TARGETS[mutant.module])
        finally:
            self._replace(path, original)

    @staticmethod
    def _replace(path: Path, source: str) -> None:
        """Bytecode is told from its source by the second and the size: it would be taken for the mutant's."""
        path.write_text(source)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


def try_out(mutants: Sequence[Mutant], workers: "SimpleQueue[Worker]") -> list[bool]:
    def killed(mutant: Mutant) -> bool:
        worker = workers.get()
        try:
            return worker.kills(mutant)
        finally:
            workers.put(worker)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(killed, mutants))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(TARGETS), metavar="MODULE")
    parser.add_argument("--sample", type=int, default=20, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    total = dead = 0
    is_enough = True
    with tempfile.TemporaryDirectory(prefix="toolreeve-mutants-") as top:
        workers: SimpleQueue[Worker] = SimpleQueue()
        for number in range(WORKERS):
            workers.put(Worker(Path(top) / str(number)))
        for module in options.modules:
            every = mutants_of(module)
            chosen = random.Random(options.seed).sample(every, min(options.sample, len(every)))
            worker = workers.get()
            if not worker.passes(TARGETS[module]):
                raise SystemExit(f"{module}: its tests fail without any mutant")
            workers.put(worker)
            killed = try_out(chosen, workers)
            total, dead = total + len(killed), dead + sum(killed)
            is_enough &= sum(killed) >= WANTED * len(killed)
            print(f"{module:24} {sum(killed):3} of {len(killed):3} killed ({len(every)} possible)", flush=True)
            for mutant, gone in zip(chosen, killed, strict=True):
                if not gone:
                    print(f"    survived: line {mutant.line}: {mutant.change[:150]}", flush=True)
    print(f"{dead} of {total} mutants killed ({dead / total:.0%})")
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
