"""Both ways to query the kernel give the same uid."""

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from toolreeve.serve.peer_uid import find_uid, query_netlink, search_proc

WAYS = [query_netlink, search_proc, find_uid]


class Pair:
    """Both ends of a connection on this machine."""

    def __init__(self, family: int, host: str) -> None:
        with socket.create_server((host, 0), family=family) as listening:
            self.far = socket.create_connection(listening.getsockname()[:2])
            self.near, _ = listening.accept()
        self.ends: tuple[Any, ...] = family, self.near.getpeername()[:2], self.near.getsockname()[:2]


@pytest.fixture(params=[(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")], ids=["IPv4", "IPv6"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(*request.param)
    with made.far, made.near:
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_belongs_to_the_user_of_the_program_at_its_far_end(pair: Pair, way: Any) -> None:
    assert way(*pair.ends) == os.getuid()


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_connection_has_no_uid(pair: Pair, way: Any) -> None:
    pair.far.close()

    assert way(*pair.ends) is None


def test_a_connection_that_does_not_exist_has_no_uid(pair: Pair) -> None:
    family, far, near = pair.ends

    assert find_uid(family, (far[0], 1), near) is None


def test_a_listening_socket_at_the_peer_address_is_not_the_peer(pair: Pair) -> None:
    family, far, near = pair.ends
    with socket.create_server((far[0], 0), family=family) as listening:
        assert find_uid(family, listening.getsockname()[:2], near) is None
