import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.tools.output_parsers import count, summarise
from toolreeve.tools.quality_commands import Purpose

NOTHING = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}


@pytest.mark.parametrize(
    ("printed", "counts"),
    [
        ("===== 1 failed, 2 passed, 3 skipped in 0.12s =====", {"passed": 2, "failed": 1, "skipped": 3}),
        ("2 passed, 1 warning, 1 error in 1.50s", {"passed": 2, "errors": 1}),
        ("\x1b[32m== \x1b[1m4 passed\x1b[0m in 0.10s ==", {"passed": 4}),
        ("==== 3 passed, 1 xfailed in 75.20s (0:01:15) ====", {"passed": 3}),
        ("==== no tests ran in 0.00s ====", {}),
        (
            " Test Files  1 failed (1)\n      Tests  1 failed | 2 passed | 1 skipped (4)\n",
            {"passed": 2, "failed": 1, "skipped": 1},
        ),
        (
            "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 3 passed, 5 total\n",
            {"passed": 3, "failed": 1, "skipped": 1},
        ),
        ("# tests 3\n# pass 2\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0\n", {"passed": 2, "failed": 1}),
        ("ℹ tests 3\nℹ pass 1\nℹ fail 0\nℹ skipped 2\n", {"passed": 1, "skipped": 2}),
        ("  5 passing (20ms)\n  1 pending\n  2 failing\n", {"passed": 5, "failed": 2, "skipped": 1}),
        (
            "Ran 6 tests in 0.001s\n\nFAILED (failures=1, errors=2, skipped=1)\n",
            {"passed": 2, "failed": 1, "errors": 2, "skipped": 1},
        ),
        ("Ran 3 tests in 0.001s\n\nOK\n", {"passed": 3}),
    ],
)
def test_the_counts_of_test_runners(printed: str, counts: dict[str, int]) -> None:
    assert count("tests", printed, "") == NOTHING | counts


@pytest.mark.parametrize(
    ("purpose", "printed", "counts"),
    [
        ("lint", "a.py:1:8: F401 unused\nb.py:2:1: E711 x\nFound 2 errors.\n", {"issues": 2, "files": 2}),
        ("lint", "All checks passed!\n", {"issues": 0, "files": 0}),
        (
            "lint",
            "/w/a.js\n  1:7  error  x  no-unused-vars\n\n✖ 3 problems (1 error, 2 warnings)\n",
            {"issues": 3, "errors": 1, "warnings": 2, "files": 1},
        ),
        ("lint", "a.py:1:80: E501 line too long\na.py:3:1: W391 blank\n", {"issues": 2, "files": 1}),
        ("lint", "", {"issues": 0, "files": 0}),
        (
            "format_check",
            "Would reformat: a.py\n1 file would be reformatted, 2 files already formatted\n",
            {"issues": 1, "files": 3},
        ),
        ("format_check", "3 files already formatted\n", {"issues": 0, "files": 3}),
        (
            "format_check",
            "would reformat a.py\n1 file would be reformatted, 1 file would be left unchanged.\n",
            {"issues": 1, "files": 2},
        ),
        ("format", "reformatted a.py\n1 file reformatted, 1 file left unchanged.\n", {"issues": 1, "files": 2}),
        (
            "format_check",
            "[warn] a.js\n[warn] b.js\n[warn] Code style issues found in 2 files. Run Prettier\n",
            {"issues": 2},
        ),
        ("format_check", "Checking formatting...\nAll matched files use Prettier code style!\n", {"issues": 0}),
        ("format", "a.js 20ms\nb.js 3ms (unchanged)\n", {"issues": 1, "files": 2}),
        ("typecheck", "Found 2 errors in 1 file (checked 3 source files)\n", {"issues": 2, "files": 1}),
        ("typecheck", "Success: no issues found in 3 source files\n", {"issues": 0, "files": 0}),
        (
            "typecheck",
            "/w/a.py\n  /w/a.py:1:5 - error: x\n1 error, 1 warning, 0 informations\n",
            {"issues": 2, "errors": 1, "warnings": 1, "files": 1},
        ),
        ("typecheck", "src/a.ts(1,14): error TS2322: x\nsrc/a.ts(2,1): error TS1: y\n", {"issues": 2, "files": 1}),
        ("build", "Found 2 errors.", {}),
    ],
)
def test_the_counts_of_linters_formatters_and_type_checkers(
    purpose: Purpose, printed: str, counts: dict[str, int]
) -> None:
    assert count(purpose, printed, "") == counts
    assert count(purpose, "", printed) == counts


def test_zero_counts_are_left_out() -> None:
    assert summarise({"passed": 2, "failed": 1, "errors": 0}) == "2 passed, 1 failed"
    assert summarise({"issues": 1, "files": 1}) == "1 issue, 1 file"


@given(st.sampled_from(["tests", "lint", "format", "format_check", "typecheck", "build"]), st.text())
def test_nothing_that_is_printed_breaks_the_counting(purpose: Purpose, printed: str) -> None:
    assert all(number >= 0 for number in count(purpose, printed, printed).values())
