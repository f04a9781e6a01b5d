"""Approve calls in a program: allow drafts, refuse the rest."""

import asyncio

from toolreeve import Answer, Request, Toolreeve


async def approve(request: Request) -> Answer:
    """A real program would ask a person here."""
    if request.effects and all("/drafts/" in effect.target for effect in request.effects):
        return request.allow(by="the drafts clerk")
    return request.deny(note="only drafts are written here")


async def main() -> None:
    async with Toolreeve(approve=approve) as reeve:
        draft = await reeve.call("write_file", path="drafts/letter.txt", content="Dear reader")
        print(draft.success, draft.meta.approved_by)  # → True the drafts clerk
        final = await reeve.call("write_file", path="drafts/../letter.txt", content="Dear reader")
        print(final.error.code if final.error else "")  # → E_APPROVAL_DENIED
        undone = await reeve.undo(draft.meta.call_id)
        print(undone.success, undone.meta.approved_by)  # → True the drafts clerk


asyncio.run(main())
