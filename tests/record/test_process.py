"""A function in a process of its own: its result, what it raises, and its end."""

import os

import pytest

from toolreeve.core.errors import ToolError
from toolreeve.record.process import run_apart


def test_the_result_comes_from_another_process() -> None:
    assert run_apart(os.getpid) != os.getpid()
    assert run_apart(divmod, 7, 2) == (3, 1)


def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_apart(divmod, 7, 0)


def test_a_process_that_ends_is_an_error() -> None:
    with pytest.raises(ToolError, match="a process that verifies has ended: killed"):
        run_apart(os._exit, 3)
