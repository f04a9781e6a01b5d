import asyncio
from typing import Any

import pytest

from toolreeve.rpc.pending import OutstandingRequest, OutstandingRequests


def outstanding(timeout: float | None = None) -> OutstandingRequest:
    return OutstandingRequest(asyncio.get_running_loop(), timeout)


async def test_a_response_settles_its_request_once() -> None:
    requests: OutstandingRequests[OutstandingRequest] = OutstandingRequests()
    one, two = outstanding(), outstanding()
    assert (requests.add(one), requests.add(two)) == (1, 2)

    requests.settle({"id": 2, "result": {"of": 2}})
    requests.settle({"id": 2, "result": {"of": "again"}})
    requests.settle({"id": "1", "result": {"of": 1}})

    assert await two.response == {"id": 2, "result": {"of": 2}}
    assert await one.response == {"id": "1", "result": {"of": 1}}


@pytest.mark.parametrize("request_id", [None, 0, 2, True, 1.0, "01x", "9" * 5000, "\u0661", [1], {}])
async def test_a_response_to_no_outstanding_request_is_ignored(request_id: Any) -> None:
    requests: OutstandingRequests[OutstandingRequest] = OutstandingRequests()
    one = outstanding()
    requests.add(one)

    requests.settle({"id": request_id, "result": {}})

    assert not one.response.done()


async def test_a_request_times_out() -> None:
    with pytest.raises(TimeoutError):
        await outstanding(0.01).response


async def test_a_removed_request_no_longer_times_out_and_gets_no_response() -> None:
    requests: OutstandingRequests[OutstandingRequest] = OutstandingRequests()
    one = outstanding(0.01)
    request_id = requests.add(one)

    requests.remove(request_id)
    requests.remove(request_id)
    requests.settle({"id": request_id, "result": {}})

    done, _ = await asyncio.wait([one.response], timeout=0.05)
    assert (done, list(requests)) == (set(), [])


async def test_all_requests_fail_with_an_exception_of_their_own() -> None:
    requests: OutstandingRequests[OutstandingRequest] = OutstandingRequests()
    one, two = outstanding(), outstanding()
    requests.add(one)
    requests.add(two)

    requests.fail_all(lambda: OSError("lost"))

    first, second = one.response.exception(), two.response.exception()
    assert (str(first), str(second)) == ("lost", "lost")
    assert first is not second
