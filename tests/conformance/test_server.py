"""Every scenario that a revision requires of a server passes through our gateway. There are no exceptions to list."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.gateway import FIXTURE, gateway, running
from tests.conformance.suite import REVISIONS, check_server, read
from tests.peers.programs import PYTHON, free_port, sdk_example

REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}


@pytest.fixture(scope="module")
def piped(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway to a server that it starts itself."""
    place = tmp_path_factory.mktemp("piped")
    with gateway({"command": str(PYTHON), "args": [str(FIXTURE), "stdio"]}, place) as url:
        yield url


@pytest.fixture(scope="module")
def webbed(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway to the SDK's own example server on the web."""
    place, port = tmp_path_factory.mktemp("webbed"), free_port()
    with running(sdk_example(port), place), gateway({"url": f"http://127.0.0.1:{port}/mcp"}, place) as url:
        yield url


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_behind_a_pipe_conforms_through_the_gateway(piped: str, revision: str, tmp_path: Path) -> None:
    report = check_server(piped, revision, tmp_path)

    assert (report.failed, report.warned) == ([], []), report.printed
    assert (report.status, report.counts) == (0, (REQUIRED[revision], REQUIRED[revision]))


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_sdks_example_on_the_web_conforms_through_the_gateway(webbed: str, revision: str, tmp_path: Path) -> None:
    report = check_server(webbed, revision, tmp_path)

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
