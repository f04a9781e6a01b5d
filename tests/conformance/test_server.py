"""Every scenario that a revision requires of a server passes through our gateway. There are no exceptions to list."""

from pathlib import Path

import pytest

from tests.conformance.gateway import FIXTURE, gateway, running
from tests.conformance.suite import REVISIONS, check_server, read
from tests.peers.programs import PYTHON, free_port, sdk_example

REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_behind_a_pipe_conforms_through_the_gateway(revision: str, peers: Path, tmp_path: Path) -> None:
    with gateway({"command": str(PYTHON), "args": [str(FIXTURE), "stdio"]}, tmp_path) as url:
        report = check_server(url, revision, tmp_path)

    assert (report.failed, report.warned) == ([], []), report.printed
    assert (report.status, report.counts) == (0, (REQUIRED[revision], REQUIRED[revision]))


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_sdks_own_example_on_the_web_conforms_through_the_gateway(
    revision: str, peers: Path, tmp_path: Path
) -> None:
    port = free_port()
    (tmp_path / "upstream").mkdir()
    with (
        running(sdk_example(port), tmp_path / "upstream"),
        gateway({"url": f"http://127.0.0.1:{port}/mcp"}, tmp_path) as url,
    ):
        report = check_server(url, revision, tmp_path)

    assert (report.failed, report.warned) == ([], []), report.printed
    assert (report.status, report.counts) == (0, (REQUIRED[revision], REQUIRED[revision]))


def test_a_summary_is_read_without_what_is_not_scored() -> None:
    printed = (
        "noise\n=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n✗ tools-list: 1 passed, 1 failed\n"
        "✗ tasks: 0 passed, 9 failed\n\nTotal: 3 passed, 10 failed\n\n"
        "Not scored for 2026-07-28: 1 scenario(s) run, 1 failing.\n  ✗ tasks (extension)\n"
    )

    report = read(1, printed)

    assert (report.counts, report.failed) == ((1, 2), ["tools-list"])
