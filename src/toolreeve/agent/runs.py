"""One run of an agent: question in, outputs and events out."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from toolreeve.agent.config import BaseAgentConfig
from toolreeve.agent.conversation import Conversation
from toolreeve.agent.events import AgentEvent, EventKind
from toolreeve.agent.loop import AgentLoop, Outcome, Stop, ToolHost
from toolreeve.agent.messages import Message, UserMessage
from toolreeve.agent.outputs import OutputReader
from toolreeve.agent.prompt import system_prompt
from toolreeve.agent.providers import ModelProvider
from toolreeve.agent.signature import Signature
from toolreeve.agent.transcript import Transcript

MAX_REPAIRS = 2


class AgentResult(dict[str, Any]):
    """The outputs by name. A run that did not complete has those it achieved; `outcome` says why it ended."""

    def __init__(self, outputs: dict[str, Any], outcome: Outcome, run_id: str, messages: Iterable[Message]) -> None:
        super().__init__(outputs)
        self.outcome = outcome
        self.run_id = run_id
        self.messages = tuple(messages)

    @property
    def completed(self) -> bool:
        """Whether the model answered by itself, before any limit."""
        return self.outcome.stop is Stop.COMPLETED

    @property
    def tools_used(self) -> list[dict[str, Any]]:
        """The tool calls of the run: tool, args, success, and where they apply error and auto_recovery."""
        return self.outcome.tools_used


Review = Callable[[str, int], Awaitable[tuple[str, str]]]
"""Of an answer and the number of the attempt: why it is refused, and what the model should do; both may be empty."""


def ignore(_: AgentEvent) -> None:
    """For a run that nobody watches."""


@dataclass(slots=True, kw_only=True)
class AgentRun:
    """`conversation` may hold earlier turns, of a chat or of a run that is resumed. `review` says what is wrong with an
    answer and whether it is refused for good; the model is asked at most `max_reviews` times to mend it."""

    id: str
    config: BaseAgentConfig
    signature: type[Signature]
    provider: ModelProvider
    tools: ToolHost
    emit: Callable[[AgentEvent], None] = ignore
    conversation: Conversation = field(default_factory=Conversation)
    transcript: Transcript | None = None
    review: Review | None = None
    max_reviews: int = 0

    async def run(self, question: str) -> AgentResult:
        """Emits exactly one `ended`, whatever happens. Raises ModelError if the first turn fails by configuration."""
        outputs = OutputReader(self.signature)
        loop = self._loop(outputs)
        found: dict[str, Any] = {}
        began = time.monotonic()
        self.emit(AgentEvent(EventKind.STARTED, {"run": self.id, "model": self.config.model, "question": question}))
        self.conversation.add(UserMessage(text=question))
        try:
            if self.transcript is not None:
                await self.transcript.begin()
            found = await self._reviewed(await self.work(loop, outputs), loop, outputs)
        except asyncio.CancelledError:
            loop.outcome.stop = Stop.CANCELLED
            raise
        except Exception as problem:
            loop.outcome.stop = Stop.MODEL
            loop.outcome.why = loop.outcome.why or str(problem)
            raise
        finally:
            loop.outcome.seconds = time.monotonic() - began
            if self.transcript is not None:
                await asyncio.shield(self._close(self.transcript, loop.outcome))
            self.emit(AgentEvent(EventKind.ENDED, {"run": self.id, "outputs": found, **loop.outcome.to_dict()}))
        return AgentResult(found, loop.outcome, self.id, self.conversation.messages)

    async def _reviewed(self, found: dict[str, Any], loop: AgentLoop, outputs: OutputReader) -> dict[str, Any]:
        if self.review is None:
            return found
        for iteration in range(self.max_reviews + 1):
            if loop.outcome.stop is not Stop.COMPLETED:
                return found
            problem, follow_up = await self.review(loop.outcome.text, iteration)
            if follow_up and iteration < self.max_reviews:
                self.conversation.add(UserMessage(text=follow_up))
                found = await self.work(loop, outputs)
                continue
            if problem:
                loop.outcome.stop = Stop.OUTPUT
                loop.outcome.why = problem
            return found
        return found

    async def _close(self, transcript: Transcript, outcome: Outcome) -> None:
        await transcript.keep(self.conversation.messages)
        await transcript.end(outcome)

    def _loop(self, outputs: OutputReader) -> AgentLoop:
        config = self.config
        return AgentLoop(
            self.provider,
            self.tools,
            model=config.model,
            system=system_prompt(self.signature, config.system_prompt, outputs.instruction),
            limits=config.limits,
            emit=self.emit,
            draw=random.random,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            keep=None if self.transcript is None else self.transcript.keep,
        )

    async def work(self, loop: AgentLoop, outputs: OutputReader) -> dict[str, Any]:
        """An answer that does not fit the signature goes back to the model, at most twice."""
        for repair in range(MAX_REPAIRS + 1):
            outcome = await loop.run(self.conversation)
            try:
                return outputs.read(outcome.text)
            except ValueError as problem:
                if outcome.stop is not Stop.COMPLETED:
                    return {}
                if repair == MAX_REPAIRS:
                    outcome.stop = Stop.OUTPUT
                    outcome.why = f"the answer does not fit the signature: {problem}"
                    return {}
                self.conversation.add(UserMessage(text=f"Your answer cannot be used: {problem}. Answer again."))
        raise AssertionError("the last attempt returns")
