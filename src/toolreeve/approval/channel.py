"""Through what can a person be asked? One protocol; the broker asks all channels at once and takes the first answer."""

from typing import Protocol, runtime_checkable

from toolreeve.approval.request import Answer, Request


@runtime_checkable
class Channel(Protocol):
    """`ask` is cancelled when another channel answered first or the time is over; it then takes its question back."""

    @property
    def name(self) -> str: ...

    def available(self) -> bool:
        """Whether somebody can be reached here now."""
        ...

    async def ask(self, request: Request) -> Answer: ...
