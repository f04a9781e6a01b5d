"""Pytest plugin: a temporary runtime, a scripted model, assertions on calls.

A test suite loads it with `pytest_plugins = ["toolreeve.pytest_plugin"]` in its conftest.py.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from toolreeve.approval.request import Answer, Request
    from toolreeve.runtime.sync import SyncToolreeve
    from toolreeve.testing.model_server import ScriptedModel
    from toolreeve.testing.script import Turn


class Approver:
    """Gives every approval request the same answer, and remembers the requests."""

    def __init__(self, *, granted: bool) -> None:
        self.granted = granted
        self.requests: list[Request] = []

    async def __call__(self, request: "Request") -> "Answer":
        self.requests.append(request)
        if self.granted:
            return request.allow(by="test")
        return request.deny(by="test", note="denied by the test")


@pytest.fixture
def approve_all() -> Approver:
    """Pass it as `approve=`; `.requests` are those that were asked."""
    return Approver(granted=True)


@pytest.fixture
def deny_all() -> Approver:
    """Pass it as `approve=`; `.requests` are those that were asked."""
    return Approver(granted=False)


MOST_COUNTED = 10_000
NewReeve = Callable[..., "SyncToolreeve"]


@pytest.fixture
def new_reeve(tmp_path: Path) -> Iterator[NewReeve]:
    """Starts runtimes with a workspace and a record of their own. The keywords are those of `Toolreeve`."""
    from toolreeve import Toolreeve
    from toolreeve.config import Settings, State, Workspace

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with ExitStack() as running:

        def start(**options: Any) -> "SyncToolreeve":
            if "settings" not in options:
                state = State(dir=str(tmp_path / "state"))
                options["settings"] = Settings(workspace=Workspace(dir=str(workspace)), state=state)
            return running.enter_context(Toolreeve.sync(**options))

        yield start


@pytest.fixture
def reeve(new_reeve: NewReeve, approve_all: Approver) -> "SyncToolreeve":
    """A runtime that approves every question, in a temporary workspace."""
    return new_reeve(approve=approve_all)


@pytest.fixture
def fake_model() -> "Iterator[Callable[..., ScriptedModel]]":
    """Starts models that reply by a script: `model = fake_model(call("read_file", path="a"), say("done"))`."""
    from toolreeve.testing.model_server import ScriptedModel

    with ExitStack() as running:

        def start(*turns: "Turn") -> ScriptedModel:
            return running.enter_context(ScriptedModel(turns))

        yield start


def assert_called(reeve: "SyncToolreeve", tool: str, *, times: int | None = None) -> None:
    """Fails unless the runtime's record has calls of the tool: as many as `times`, or at least one."""
    found = len(reeve.wait(reeve.audit.recent(last_n=MOST_COUNTED, filters={"tool": tool})))
    if times is None:
        assert found, f"{tool!r} was not called"  # noqa: S101 - an assertion is what it is
    else:
        assert found == times, f"{tool!r} was called {found} times, not {times}"  # noqa: S101
