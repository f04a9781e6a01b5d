"""A shell in whose home the clients are installed."""

import pytest

from tests.cli.adopt.homes import FILES, put
from tests.cli.conftest import Shell


@pytest.fixture
def installed(shell: Shell) -> Shell:
    for name, text in FILES.items():
        put(shell.home / name, text)
    return shell
