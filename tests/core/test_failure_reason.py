"""The line that says why a program failed."""

import pytest

from toolreeve.core.failure_reason import find_reason, lacks_network


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ""),
        ("  \n\n", ""),
        ("one\ntwo\n", "two"),
        (
            "fatal: not a git repository (or any parent up to mount point /)\n"
            "Stopping at filesystem boundary (GIT_DISCOVERY_ACROSS_FILESYSTEM not set).\n",
            "fatal: not a git repository (or any parent up to mount point /)",
        ),
        ("error: pathspec 'x' did not match\nhint: try again\n", "error: pathspec 'x' did not match"),
        ("gcc: error: no input files\ncompilation terminated.\n", "gcc: error: no input files"),
        (
            "warning: Not a git repository.\nusage: git diff --no-index\n\n  --output <file>\n",
            "warning: Not a git repository.",
        ),
        ("usage: prog [-h]\nprog: error: unrecognized arguments: -z\n", "prog: error: unrecognized arguments: -z"),
        ('Traceback (most recent call last):\n  File "x"\nerror: no\nValueError: bad\n', "ValueError: bad"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_the_reason_is_the_line_that_says_why(text: str, reason: str) -> None:
    assert find_reason(text) == reason


def test_a_silent_curl_says_by_its_status_that_it_could_not_connect() -> None:
    assert lacks_network("", script="curl -s https://example.com", status=6)
    assert not lacks_network("", script="curl -s https://example.com", status=22)
    assert not lacks_network("", script="grep x y", status=6)
