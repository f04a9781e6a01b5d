"""Signed links: they expire, cannot be forged, decide nothing by being opened, and work once."""

import asyncio

import pytest

from tests.approval.people import Person
from tests.world import World
from toolreeve.approval.decision import AlreadyAnswered, Decided, Invalid
from toolreeve.approval.links import BadLink, LinkClaim, LinkSigner
from toolreeve.config import Approval as ApprovalSettings


def signer(key: bytes = b"k" * 32, *, now: float = 100.0) -> LinkSigner:
    return LinkSigner(lambda: key, now=lambda: now, lifetime=60.0)


def test_a_link_names_its_question_until_it_expires() -> None:
    token = signer().sign("q1", "d1")

    assert signer(now=159.0).verify(token) == LinkClaim(question="q1", digest="d1", expires=160.0)
    with pytest.raises(BadLink, match="expired"):
        signer(now=160.0).verify(token)


def test_a_link_that_was_altered_or_made_with_another_key_is_not_valid() -> None:
    token = signer().sign("q1", "d1")
    forged = [signer(b"x" * 32).sign("q1", "d1"), token[:-2], f"A{token}", "", ".", "a.b", "ü" + token, "x" * 5000]
    forged += [
        token[:index] + ("A" if token[index] != "A" else "B") + token[index + 1 :] for index in range(len(token))
    ]

    for each in forged:
        with pytest.raises(BadLink):
            signer().verify(each)


async def test_opening_a_link_decides_nothing_and_answering_by_it_works_once(world: World) -> None:
    person = Person()
    settings = world.settings(approval=ApprovalSettings(dead_time=0.0, link_url="https://console.example/"))
    async with world.reeve(approve=person, settings=settings) as reeve:
        calling = asyncio.create_task(reeve.call("write_file", path="a.txt", content="x"))
        await person.asked.wait()
        address = reeve.approvals.new_link(person.requests[0])
        token = address.removeprefix("https://console.example/approve/")
        opened = [await reeve.approvals.open_link(token) for _ in range(3)]
        odd = await reeve.approvals.decide_by_link(token, answer="")
        first = await reeve.approvals.decide_by_link(token, answer="allow")
        second = await reeve.approvals.decide_by_link(token, answer="deny")
        result = await calling

    assert [card["state"] for card in opened if card is not None] == ["pending"] * 3
    assert isinstance(odd, Invalid)
    assert isinstance(first, Decided)
    assert isinstance(second, AlreadyAnswered)
    assert result.meta.approved_by == "holder via link"


async def test_a_link_to_one_question_answers_no_other(world: World) -> None:
    person = Person()
    async with world.reeve(approve=person, settings=world.settings(approval=ApprovalSettings(timeout=0.05))) as reeve:
        await reeve.call("write_file", path="a.txt", content="x")
        token = reeve.approvals.new_link(person.requests[0]).rpartition("/")[2]
        await reeve.call("write_file", path="a.txt", content="x")
        late = await reeve.approvals.decide_by_link(token, answer="allow")
        used = (await reeve.approvals.list(state="used")).items

    assert not isinstance(late, Decided)
    assert used == []
