"""The parts of a runtime that ask people, built when needed."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.config import Configuration
from toolreeve.core.action import Action
from toolreeve.core.atomic import write_private
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.record.audit import Audit
from toolreeve.record.events import EventPublisher
from toolreeve.record.journal import Journal
from toolreeve.record.store import RecordStore
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.policy_source import PolicySource
from toolreeve.runtime.processes import DeferredProcesses

if TYPE_CHECKING:
    from toolreeve.approval.automatic import AutomaticApproval
    from toolreeve.approval.broker import Broker
    from toolreeve.approval.channel import Channel
    from toolreeve.approval.governors import Governors
    from toolreeve.approval.grants import Grants
    from toolreeve.approval.request import Request
    from toolreeve.record.pending import PendingStore
    from toolreeve.runtime.approvals import Approvals


class ApprovalParts:
    """Files of governors, policies and addresses are read at once: what is wrong in them stops the start."""

    def __init__(
        self,
        configuration: Configuration,
        registry: ToolRegistry,
        channels: "Sequence[Channel]",
        *,
        policy: PolicySource,
        store: RecordStore,
        journal: Journal,
        events: EventPublisher,
        redact: Callable[[str], str],
        files: WorkspaceFiles,
        http: GuardedHttp,
        processes: DeferredProcesses,
    ) -> None:
        self._configuration = configuration
        self._settings = configuration.settings.approval
        self._registry = registry
        self._policy = policy
        self._store = store
        self._journal = journal
        self._events = events
        self._redact = redact
        self._files = files
        self._channels = (*channels, *self._new_notifications())
        self.governors = self._new_governors(processes, http)
        self._automatic = self._new_automatic()

    @cached_property
    def questions(self) -> "PendingStore":
        from toolreeve.record.pending import PendingStore

        lifetime = self._settings.pending_hours * 3600
        return PendingStore(self._store.pending, time.time, lifetime=lifetime, process=self._journal.process)

    @cached_property
    def grants(self) -> "Grants":
        from toolreeve.approval.grants import Grants

        return Grants(
            self._store.grants(time.time),
            now=time.time,
            process=self._journal.process,
            workspace=os.path.realpath(self._configuration.settings.workspace.dir),
            lifetime=self._settings.session_hours * 3600,
            covers=self._covers,
            redact=self._redact,
        )

    async def close(self) -> None:
        if "grants" in vars(self):  # else nobody was asked
            await self.grants.end()

    def _covers(self, rule: Any, action: Action) -> bool:
        from toolreeve.policy.offers import covers

        return covers(rule, action, self._policy())

    @cached_property
    def broker(self) -> "Broker":
        """Not imported before the first question."""
        from toolreeve.approval.broker import Broker
        from toolreeve.approval.channel import EditingChannel
        from toolreeve.approval.preview import previewer
        from toolreeve.approval.request import Choice
        from toolreeve.policy.offers import find_offers

        for channel in self._channels:
            if isinstance(channel, EditingChannel) and channel.judge_edit is None:
                channel.judge_edit = self.judge_edit
        return Broker(
            self._channels,
            now=time.time,
            timeout=self._settings.timeout,
            emit=self._events.pass_on,
            remember=self._policy.remember,
            preview=previewer(self._files),
            pending=self.questions,
            offers=lambda action: [Choice(*each) for each in find_offers(action, self._policy())],
            grants=self.grants,
            facts=_describe_parts,
            home=self._configuration.home,
            escalation=self._settings.escalate_after,
            automatic=self._automatic,
        )

    @cached_property
    def approvals(self) -> "Approvals":
        from toolreeve.approval.links import LinkSigner
        from toolreeve.runtime.approvals import Approvals

        return Approvals(
            self.questions,
            self._store.grants(time.time),
            now=time.time,
            judge_edit=self.judge_edit,
            audit=Audit(self._store),
            redact=self._redact,
            home=self._configuration.home,
            dead_time=self._settings.dead_time,
            links=LinkSigner(
                partial(_load_link_key, Path(self._configuration.settings.state.dir)),
                now=time.time,
                lifetime=self._settings.pending_hours * 3600,
            ),
            link_url=self._settings.link_url,
        )

    async def judge_edit(self, request: "Request", args: Mapping[str, Any]) -> "Request":
        """Not imported before the first edit."""
        from toolreeve.approval.preview import previewer
        from toolreeve.runtime.edited_call import EditJudge

        judge = EditJudge(self._registry, self._files, self._policy, previewer(self._files))
        return await judge(request, args)

    def _new_notifications(self) -> "Sequence[Channel]":
        """Raises ToolreeveError without the extra `notify`, or for an address that is not valid."""
        addresses = self._settings.notify
        if not addresses:
            return ()
        from toolreeve.approval.channels.notification import NotificationChannel, new_sender

        send = new_sender([self._configuration.reveal(each, key="approval.notify") for each in addresses])
        return (NotificationChannel(send, self.approvals.new_link, redact=self._redact),)

    def _new_governors(self, processes: DeferredProcesses, http: GuardedHttp) -> "Governors | None":
        """Raises ConfigErrors for a file that is not valid."""
        if self._settings.governors_file is None:
            return None
        from toolreeve.approval.governor_files import read_governors
        from toolreeve.approval.governors import Governors

        reveal = partial(self._configuration.reveal, key="approval.governors_file")
        return Governors(
            read_governors(Path(self._settings.governors_file), reveal),
            processes=processes,
            http=http,
            now=time.time,
            workspace=os.path.realpath(self._configuration.settings.workspace.dir),
        )

    def _new_automatic(self) -> "AutomaticApproval | None":
        """Raises ConfigErrors for a file that is not valid."""
        file = self._settings.auto_approval_file
        if file is None and self.governors is None:
            return None
        from toolreeve.approval.auto_approval import read_policies
        from toolreeve.approval.automatic import AutomaticApproval

        policies = read_policies(Path(file)) if file else ()
        return AutomaticApproval(policies, self.governors, covers=self._covers)


def _load_link_key(state: Path) -> bytes:
    """The key of links to questions, shared by all processes of the same state directory."""
    path = state / "link.key"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(own, os.urandom(32))
    with contextlib.suppress(FileExistsError):  # of two processes, the first one's key counts
        path.hardlink_to(own)
    own.unlink()
    return path.read_bytes()


def _describe_parts(action: Action) -> Mapping[str, Any]:
    """Imported for the first question: the analysis of commands is large."""
    from toolreeve.policy.question_facts import describe_parts

    return describe_parts(action)
