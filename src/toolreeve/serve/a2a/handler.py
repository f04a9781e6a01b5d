"""A2A requests of all bindings and versions, answered from the board.

Every user sees their own tasks only: another's is as unknown as one that does not exist.
"""

import base64
import binascii
import hashlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import RequestHandler
from a2a.server.request_handlers.request_handler import validate_request_params
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    InvalidParamsError,
    InvalidRequestError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from toolreeve.approval.decision import Counted, Decided, describe
from toolreeve.core.call import new_id
from toolreeve.core.names import client_arguments
from toolreeve.core.suggest import did_you_mean
from toolreeve.core.tool import ToolSpec
from toolreeve.record.tasks import TaskQuery, TaskRow
from toolreeve.record.webhooks import Webhook
from toolreeve.serve.a2a.board import TaskBoard, event_of, read_task
from toolreeve.serve.a2a.card import new_card
from toolreeve.serve.a2a.card_signature import CardSigner
from toolreeve.serve.a2a.development import is_activated
from toolreeve.serve.a2a.messages import (
    RequestedCall,
    asks_for_help,
    help_text,
    named_question,
    read_answer,
    read_calls,
)
from toolreeve.serve.a2a.push import PushConfigs, number_of
from toolreeve.serve.a2a.push_settings import of_message
from toolreeve.serve.a2a.turns import Turns, questions_of
from toolreeve.serve.api.running import session_of
from toolreeve.serve.tokens import AccessScope, Credential

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.mcp.http import ToolViews

MESSAGES = uuid.UUID("6f1c1c8e-3a53-4d0e-9f55-0d5b1f4f7a21")
PAGE = 50
MAX_PAGE = 100
MAX_RETRIES = 5
SELF_APPROVAL = (
    "this credential may not approve: a person decides in the console or with `toolreeve approvals`;"
    " a token that may has the scope 'approve' (toolreeve tokens add --scope approve …)"
)


class TaskHandler(RequestHandler):
    """The context's state has the credential, our own address and the request's headers."""

    def __init__(
        self,
        reeve: "Toolreeve",
        views: "ToolViews",
        board: TaskBoard,
        turns: Turns,
        push: PushConfigs,
        version: str,
        signer: CardSigner | None = None,
    ) -> None:
        self.reeve = reeve
        self._views = views
        self.board = board
        self.turns = turns
        self.push = push
        self._version = version
        self._signer = signer

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        if (reply := self._help(params.message, credential_of(context))) is not None:
            return reply
        row = await self._receive(params, context)
        if not params.configuration.return_immediately:
            await self.turns.wait(row.id)
        return _shown(await self.find(row.id, credential_of(context)), params.configuration)

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any, None]:
        if (reply := self._help(params.message, credential_of(context))) is not None:
            yield reply
            return
        row = await self._receive(params, context)
        yield read_task(row)
        if row.ended or row.question:
            return
        async for response in self._follow(row, row.last, context):
            yield event_of(response)
            if response.status_update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
                return

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any, None]:
        """From now on, or with the header Last-Event-ID after the event with that sequence."""
        row = await self.find(params.id, credential_of(context))
        after = _read_sequence(context.state["headers"].get("last-event-id", ""))
        if row.ended and after is None:
            raise UnsupportedOperationError(message="the task has ended: there is nothing to subscribe to")
        if after is None:
            yield read_task(row)
            after = row.last
        elif row.ended and after >= row.last:
            return
        async for response in self._follow(row, after, context):
            yield event_of(response)

    async def _follow(self, row: TaskRow, after: int, context: ServerCallContext) -> AsyncIterator[StreamResponse]:
        """Until the credential is no longer accepted."""
        async with aclosing(self.board.follow(row.id, after)) as responses:
            async for response in responses:
                if not self.turns.is_valid(credential_of(context).id):
                    return
                yield response

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        return _shown(await self.find(params.id, credential_of(context)), params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        size = params.page_size if params.HasField("page_size") else PAGE
        if not 1 <= size <= MAX_PAGE:
            raise InvalidParamsError(message=f"pageSize must be from 1 to {MAX_PAGE}")
        query = TaskQuery(
            owner=credential_of(context).principal.user,
            context=params.context_id,
            state=TaskState.Name(params.status) if params.status else "",
            since=params.status_timestamp_after.ToMilliseconds() / 1000,
            before=_read_cursor(params.page_token),
            limit=size,
        )
        rows, total = await self.board.table.page(query)
        cursor = _write_cursor(rows[-1]) if len(rows) == size else ""
        tasks = [_shown(row, params) for row in rows]
        return ListTasksResponse(tasks=tasks, next_page_token=cursor, page_size=size, total_size=total)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        credential = credential_of(context)
        check_scope(credential, AccessScope.CALL)
        for _ in range(MAX_RETRIES):
            row = await self.find(params.id, credential)
            if row.ended:
                raise TaskNotCancelableError(message=f"the task has ended: {row.state}")
            if row.process not in ("", self.reeve.internals.journal.process):
                raise TaskNotCancelableError(message="the task runs in another process of this server")
            if (done := await self.turns.cancel(row)) is not None:
                return read_task(done)
        raise TaskNotCancelableError(message="the task changes too fast to be canceled; try again")

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        credential = credential_of(context)
        check_scope(credential, AccessScope.CALL)
        row = await self.find(params.task_id, credential)
        return _shown_config(row, await self.push.add(row, of_message(params)))

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        row = await self.find(params.task_id, credential_of(context))
        return _shown_config(row, await self.push.find(row, params.id))

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        row = await self.find(params.task_id, credential_of(context))
        configs = [_shown_config(row, hook) for hook in await self.push.hooks(row)]
        return ListTaskPushNotificationConfigsResponse(configs=configs)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        credential = credential_of(context)
        check_scope(credential, AccessScope.CALL)
        await self.push.delete(await self.find(params.task_id, credential), params.id)

    async def on_get_extended_agent_card(
        self,
        params: GetExtendedAgentCardRequest,  # noqa: ARG002
        context: ServerCallContext,
    ) -> AgentCard:
        return self.card(context.state["base"], credential_of(context), requires_token=context.state["locked"])

    def card(self, base: str, credential: Credential | None, *, requires_token: bool) -> AgentCard:
        """`credential` is None for a caller that sent none where one is required."""
        specs = None if credential is None else self.visible(credential)
        card = new_card(base, self._version, specs, requires_token=requires_token, grpc=self._grpc_address(base))
        return card if self._signer is None else self._signer.sign(card, base)

    def _grpc_address(self, base: str) -> str:
        """On the host that the caller knows us by."""
        settings = self.reeve.configuration.settings
        port = settings.a2a.grpc_port
        return f"{urlsplit(base).hostname or settings.serve.host}:{port}" if port else ""

    def visible(self, credential: Credential) -> list[ToolSpec]:
        view = self._views.of(credential)
        return [bound.spec for bound in self.reeve.tools.list() if view.shows(bound.spec)]

    async def find(self, number: str, credential: Credential) -> TaskRow:
        """Raises TaskNotFoundError."""
        check_scope(credential, AccessScope.READ)
        row = await self.board.table.find(number)
        if row is None or row.owner != credential.principal.user:
            raise TaskNotFoundError(message=f"no task {number!r:.80}")
        return row

    async def answer(
        self, row: TaskRow, credential: Credential, *, granted: bool, question: str = "", said: Message | None = None
    ) -> None:
        """Decide a question of a task, its first one unless another is named. A caller may always refuse its own call;
        to approve needs the scope. What was said is stored first: sent again, it does not answer the next question."""
        if question and question not in questions_of(row):
            raise InvalidParamsError(message=f"the task does not wait for the approval {question!r:.60}")
        if granted and AccessScope.APPROVE not in credential.scopes:
            raise InvalidRequestError(message=SELF_APPROVAL)
        if said is not None:
            row = await self.board.publish(row, said=said) or row
        outcome = await self.reeve.approvals.decide(
            question or row.question,
            answer="allow" if granted else "deny",
            by=credential.principal,
            channel="a2a",
            dead_time=0.0,
        )
        if isinstance(outcome, Counted):
            return
        if not isinstance(outcome, Decided):
            raise InvalidParamsError(message=f"the answer does not count: {describe(outcome)}")
        await self.turns.resume(row)

    def _help(self, message: Message, credential: Credential) -> Message | None:
        """The reply to `/help`, which needs no task: how calls are written, and which tools there are."""
        if message.task_id or message.role != Role.ROLE_USER or not asks_for_help(message):
            return None
        check_scope(credential, AccessScope.READ)
        return Message(
            message_id=str(uuid.uuid4()),
            context_id=message.context_id or str(uuid.uuid4()),
            role=Role.ROLE_AGENT,
            parts=[Part(text=help_text(self.visible(credential)), media_type="text/plain")],
        )

    async def _receive(self, params: SendMessageRequest, context: ServerCallContext) -> TaskRow:
        credential = credential_of(context)
        check_scope(credential, AccessScope.CALL)
        message = params.message
        if message.role != Role.ROLE_USER:
            raise InvalidParamsError(message="the role of a message to an agent is ROLE_USER")
        if message.task_id:
            return await self._continue(message, credential)
        number = task_number(credential.principal.user, message)
        if (known := await self.board.table.find(number)) is not None:
            return known
        message.context_id = message.context_id or str(uuid.uuid4())
        limit = self.reeve.configuration.settings.a2a.max_file_bytes
        requested = read_calls(message, max_file_bytes=limit, agents=self._agents(credential))
        calls = [self._resolve(call, credential) for call in requested]
        self.turns.check_room(credential.principal.user)
        row = await self.board.add(
            number,
            message,
            owner=credential.principal.user,
            turn=_new_turn(calls, message, credential, context.state["headers"]),
            process=self.reeve.internals.journal.process,
        )
        if row is None:
            return await self.find(number, credential)
        if params.configuration.HasField("task_push_notification_config"):
            await self._push_or_end(row, params.configuration.task_push_notification_config)
        self.turns.start(row)
        return row

    async def _push_or_end(self, row: TaskRow, config: TaskPushNotificationConfig) -> None:
        """A task whose notifications cannot be sent is not begun."""
        try:
            await self.push.add(row, of_message(config))
        except InvalidParamsError:
            await self.turns.cancel(row)
            raise

    async def _continue(self, message: Message, credential: Credential) -> TaskRow:
        row = await self.find(message.task_id, credential)
        if message.context_id and message.context_id != row.context:
            raise InvalidParamsError(message="the task belongs to another context")
        if any(said.message_id == message.message_id for said in read_task(row).history):
            return row
        if not row.question:
            raise UnsupportedOperationError(message=f"the task waits for no input: {row.state}")
        granted = read_answer(message)
        if granted is None:
            asked = await self.turns.ask_again(row, message)
            return asked or await self.find(row.id, credential)
        await self.answer(row, credential, granted=granted, question=named_question(message), said=message)
        return await self.find(row.id, credential)

    def _agents(self, credential: Credential) -> list[str]:
        """The tools that are agents, as far as the caller may see them."""
        view = self._views.of(credential)
        names = [bound.spec.name for bound in self.reeve.tools.list() if bound.spec.category == "agent"]
        return [name for name in names if view.find(name) is not None]

    def _resolve(self, call: RequestedCall, credential: Credential) -> RequestedCall:
        view = self._views.of(credential)
        found = view.find(call.tool)
        if found is None:
            hint = did_you_mean(view.similar(call.tool)) or "the agent card lists them"
            raise InvalidParamsError(message=f"no tool is called {call.tool!r:.100}; {hint}")
        return RequestedCall(id=call.id, tool=found.spec.name, args=client_arguments(call.tool, call.args))


def credential_of(context: ServerCallContext) -> Credential:
    credential: Credential = context.state["credential"]
    return credential


def check_scope(credential: Credential, scope: AccessScope) -> None:
    if scope not in credential.scopes:
        held = ", ".join(sorted(credential.scopes))
        raise InvalidRequestError(message=f"this needs the scope {scope.value!r}; the credential has: {held}")


def _new_turn(
    calls: list[RequestedCall], message: Message, credential: Credential, headers: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "calls": [call.to_dict() for call in calls],
        "next": 0,
        "call": new_id(),
        "user": credential.principal.user,
        "role": credential.principal.role.value,
        "credential": credential.id,
        "session": session_of(credential, f"a2a {message.context_id}"),
        "client": headers.get("user-agent", "")[:200],
        "development": is_activated(headers),
    }


def _shown(row: TaskRow, wanted: SendMessageConfiguration | GetTaskRequest | ListTasksRequest) -> Task:
    task = read_task(row)
    if wanted.HasField("history_length"):
        del task.history[: max(0, len(task.history) - wanted.history_length)]
    return task


def task_number(user: str, message: Message) -> str:
    """The same message of the same user is the same task, however often it is sent."""
    content = Message(message_id=message.message_id, context_id=message.context_id, parts=message.parts)
    digest = hashlib.sha256(content.SerializeToString(deterministic=True)).hexdigest()
    return str(uuid.uuid5(MESSAGES, f"{user}\0{digest}"))


def _shown_config(row: TaskRow, hook: Webhook) -> TaskPushNotificationConfig:
    """Without the token and the credentials."""
    return TaskPushNotificationConfig(id=number_of(row, hook), task_id=row.id, url=hook.url)


def _read_sequence(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise InvalidParamsError(message="Last-Event-ID must be the sequence of an event")
    return int(text)


def _write_cursor(row: TaskRow) -> str:
    return base64.urlsafe_b64encode(f"{row.changed!r} {row.id}".encode()).decode()


def _read_cursor(token: str) -> tuple[float, str] | None:
    if not token:
        return None
    try:
        changed, _, number = base64.b64decode(token, altchars=b"-_", validate=True).decode().partition(" ")
        return float(changed), number
    except (ValueError, binascii.Error):
        raise InvalidParamsError(message="pageToken is none of ours") from None
