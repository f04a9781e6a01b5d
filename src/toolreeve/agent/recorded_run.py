"""Recorded runs of an agent, with the user's words passed on."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolreeve.agent.config import BaseAgentConfig
from toolreeve.agent.conversation import Conversation
from toolreeve.agent.events import AgentEvent
from toolreeve.agent.phases import PhasedRun
from toolreeve.agent.prompt import question
from toolreeve.agent.providers import ModelProvider
from toolreeve.agent.runs import AgentResult, AgentRun, ignore
from toolreeve.agent.signature import Ask, Signature, bind
from toolreeve.agent.tool_host import ReeveTools
from toolreeve.agent.transcript import Transcript, find_run, load_messages
from toolreeve.config.os_user import os_user_name
from toolreeve.core.call import new_id
from toolreeve.record.agent_runs import AgentRunRow
from toolreeve.runtime.toolreeve import Toolreeve


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run to continue: `stored` of the messages of its conversation are in the record."""

    row: AgentRunRow
    conversation: Conversation
    stored: int


async def load_run(reeve: Toolreeve, prefix: str) -> StoredRun:
    """Moves the runtime into the session of the run: what its results were labelled and what the user said still hold.
    Raises ToolError if no run, or several, have an id that begins so."""
    runs = reeve.internals.store.agent_runs
    row = await find_run(runs, os_user_name(), prefix)
    reeve.session = row.session
    stored = len(await runs.messages(row.id))
    return StoredRun(row=row, conversation=Conversation(await load_messages(runs, row.id)), stored=stored)


def new_stored_run(reeve: Toolreeve, config: BaseAgentConfig, asked: str) -> StoredRun:
    """A run of which nothing is in the record yet."""
    return StoredRun(row=_new_row(reeve, config, asked), conversation=Conversation(), stored=0)


async def run_recorded(
    reeve: Toolreeve,
    config: BaseAgentConfig,
    inputs: Mapping[str, Any],
    *,
    provider: ModelProvider,
    signature: type[Signature] = Ask,
    emit: Callable[[AgentEvent], None] = ignore,
    earlier: StoredRun | None = None,
) -> AgentResult:
    """Waits for the servers first. `earlier` is a run to continue."""
    bound = bind(signature, dict(inputs))
    asked = question(signature, bound)
    await reeve.fleet.settled()
    if words := _own_words(signature, bound):
        await reeve.say(words)
    before = earlier or new_stored_run(reeve, config, asked)
    row = before.row
    new_run = PhasedRun if config.phases else AgentRun
    run = new_run(
        review=partial(reeve.internals.review_output, reeve.session),
        max_reviews=reeve.internals.max_reviews,
        id=row.id,
        config=config,
        signature=signature,
        provider=provider,
        tools=ReeveTools(reeve, reeve.session),
        emit=emit,
        conversation=before.conversation,
        transcript=Transcript(
            reeve.internals.store.agent_runs, row, redact=reeve.internals.redact, now=time.time, stored=before.stored
        ),
    )
    return await run.run(asked)


def _own_words(signature: type[Signature], inputs: Mapping[str, Any]) -> str:
    """The inputs that vouch for what the agent does: all but those declared as untrusted."""
    fields = signature.inputs
    own = {name: value for name, value in inputs.items() if name not in fields or not fields[name].untrusted}
    return question(signature, own) if own else ""


def _new_row(reeve: Toolreeve, config: BaseAgentConfig, asked: str) -> AgentRunRow:
    return AgentRunRow(
        id=new_id(),
        user=os_user_name(),
        workspace=reeve.configuration.settings.workspace.dir,
        session=reeve.session,
        model=f"{config.llm_provider}:{config.model}",
        question=reeve.internals.redact(asked),
        began=time.time(),
    )
