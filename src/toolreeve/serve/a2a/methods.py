"""JSON-RPC methods of ours besides those of the A2A specification."""

import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.types import Message, Part, Role, SendMessageRequest, Task, TaskState
from a2a.utils.errors import InvalidParamsError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from toolreeve.core.call import new_id
from toolreeve.core.tool import ToolSpec
from toolreeve.record.tasks import TaskQuery, TaskRow
from toolreeve.record.webhooks import Webhook
from toolreeve.serve.a2a.board import read_task
from toolreeve.serve.a2a.handler import TaskHandler, check_scope, credential_of
from toolreeve.serve.a2a.messages import meaning_of
from toolreeve.serve.a2a.parts import data_part
from toolreeve.serve.a2a.push import number_of
from toolreeve.serve.a2a.push_settings import read_push_settings, show_settings
from toolreeve.serve.a2a.turns import questions_of
from toolreeve.serve.tokens import AccessScope

Method = Callable[[Mapping[str, Any], ServerCallContext], Awaitable[Any]]
MAX_LISTED = 100
MAX_OFFSET = 10_000


class OwnMethods:
    """`tasks/list` pages as version 0.3 did it, and push configurations have more keys than there. `commands/get` and
    `command/execute` are those of the development-tool extension."""

    def __init__(self, handler: TaskHandler) -> None:
        self._handler = handler
        self.by_name: Mapping[str, Method] = {
            "tasks/list": self._list_tasks,
            "tasks/getInputRequired": self._get_input_required,
            "tasks/provideInputAndContinue": self._provide_input,
            "commands/get": self._list_commands,
            "command/execute": self._execute_command,
            "governor/history": self._list_history,
            "tasks/pushNotificationConfig/set": self._set_push,
            "tasks/pushNotificationConfig/get": self._get_push,
            "tasks/pushNotificationConfig/list": self._list_push,
            "tasks/pushNotificationConfig/delete": self._delete_push,
        }

    async def _list_tasks(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        _check_keys(params, "contextId", "limit", "offset")
        limit = _whole(params, "limit", 20, 1, MAX_LISTED)
        offset = _whole(params, "offset", 0, 0, MAX_OFFSET)
        credential = credential_of(context)
        check_scope(credential, AccessScope.READ)
        wanted = _text(params, "contextId", "")
        query = TaskQuery(owner=credential.principal.user, context=wanted, limit=offset + limit)
        rows, total = await self._handler.board.table.page(query)
        tasks = [old_task(read_task(row)) for row in rows[offset:]]
        return {"tasks": tasks, "total": total, "hasMore": offset + len(tasks) < total}

    async def _get_input_required(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        _check_keys(params, "taskId")
        row = await self._handler.find(_text(params, "taskId"), credential_of(context))
        if not row.question:
            return {"taskId": row.id, "inputRequired": False}
        first, *further = await self._handler.turns.describe(questions_of(row))
        return {"taskId": row.id, "inputRequired": True, **first, **({"further": further} if further else {})}

    async def _provide_input(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        _check_keys(params, "taskId", "input", "permissionOptionId", "approvalId")
        credential = credential_of(context)
        check_scope(credential, AccessScope.CALL)
        row = await self._handler.find(_text(params, "taskId"), credential)
        if ("input" in params) == ("permissionOptionId" in params):
            raise InvalidParamsError(message="give either input or permissionOptionId")
        if not row.question:
            raise UnsupportedOperationError(message=f"the task waits for no input: {row.state}")
        granted = meaning_of(params.get("input", params.get("permissionOptionId")))
        if granted is None:
            raise InvalidParamsError(message="that was not offered: answer allow_once or reject_once")
        await self._handler.answer(row, credential, granted=granted, question=_text(params, "approvalId", ""))
        await self._handler.turns.wait(row.id)
        return old_task(read_task(await self._handler.find(row.id, credential)))

    async def _list_commands(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        _check_keys(params)
        credential = credential_of(context)
        check_scope(credential, AccessScope.READ)
        return {"commands": [_command(spec) for spec in self._handler.visible(credential)]}

    async def _execute_command(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        """With `command` and `parameters`, or with `commandPath` and `args` as text."""
        _check_keys(params, "command", "parameters", "commandPath", "args", "contextId")
        message = Message(
            message_id=new_id(),
            context_id=_text(params, "contextId", ""),
            role=Role.ROLE_USER,
            parts=[_command_part(params)],
        )
        task = await self._handler.on_message_send(SendMessageRequest(message=message), context)
        waits = isinstance(task, Task) and task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        status = "AWAITING_ACTION_CONFIRMATION" if waits else "STARTED"
        return {"executionId": task.id, "status": status, "task": old_task(task)}

    async def _set_push(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        _check_keys(params, "taskId", "pushNotificationConfig", "metadata")
        credential = credential_of(context)
        check_scope(credential, AccessScope.CALL)
        settings = read_push_settings(params.get("pushNotificationConfig"))
        row = await self._handler.find(_text(params, "taskId"), credential)
        return _shown_push(row, await self._handler.push.add(row, settings))

    async def _get_push(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        """Without an id, the only or first one."""
        _check_keys(params, "id", "pushNotificationConfigId", "metadata")
        row = await self._handler.find(_text(params, "id"), credential_of(context))
        number = _text(params, "pushNotificationConfigId", "")
        found = [] if number else await self._handler.push.hooks(row)
        return _shown_push(row, found[0] if found else await self._handler.push.find(row, number))

    async def _list_push(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        _check_keys(params, "id", "metadata")
        row = await self._handler.find(_text(params, "id"), credential_of(context))
        return [_shown_push(row, hook) for hook in await self._handler.push.hooks(row)]

    async def _delete_push(self, params: Mapping[str, Any], context: ServerCallContext) -> None:
        _check_keys(params, "id", "pushNotificationConfigId", "metadata")
        credential = credential_of(context)
        check_scope(credential, AccessScope.CALL)
        row = await self._handler.find(_text(params, "id"), credential)
        await self._handler.push.delete(row, _text(params, "pushNotificationConfigId"))

    async def _list_history(self, params: Mapping[str, Any], context: ServerCallContext) -> Any:
        """What was asked and decided, of all users: for those who may approve."""
        _check_keys(params, "limit", "cursor")
        check_scope(credential_of(context), AccessScope.APPROVE)
        limit = _whole(params, "limit", 50, 1, MAX_LISTED)
        cursor = _text(params, "cursor", "") or None
        return await self._handler.reeve.approvals.history(limit=limit, cursor=cursor)


def _command(spec: ToolSpec) -> dict[str, Any]:
    required = spec.input.get("required", ())
    arguments = [
        {"name": name, "description": str(value.get("description", "")), "isRequired": name in required}
        for name, value in spec.input.get("properties", {}).items()
    ]
    return {"name": spec.name, "description": spec.description, "arguments": arguments, "subCommands": []}


def _command_part(params: Mapping[str, Any]) -> Part:
    """Raises InvalidParamsError."""
    if "commandPath" not in params:
        tool = _text(params, "command").removeprefix("/")
        return data_part({"toolId": tool, "parameters": params.get("parameters", {})})
    match params["commandPath"]:
        case [str(name)] if not {"command", "parameters"} & set(params):
            return Part(text=f"/{shlex.quote(name)} {_text(params, 'args', '')}")
    raise InvalidParamsError(message="give command and parameters, or a commandPath of one name and args")


def _shown_push(row: TaskRow, hook: Webhook) -> dict[str, Any]:
    return {"taskId": row.id, "pushNotificationConfig": show_settings(hook, number_of(row, hook))}


def old_task(task: Task | Message) -> dict[str, Any]:
    """A task with states in the words of version 0.3."""
    made: dict[str, Any] = MessageToDict(task)
    if isinstance(task, Task):
        made["status"]["state"] = old_state(task.status.state)
    return made


def old_state(state: TaskState) -> str:
    return str(TaskState.Name(state)).removeprefix("TASK_STATE_").lower().replace("_", "-")


def _check_keys(params: Mapping[str, Any], *known: str) -> None:
    if unknown := sorted(set(params) - set(known)):
        raise InvalidParamsError(message=f"unknown parameter {unknown[0]!r:.60}; known: {', '.join(known) or 'none'}")


def _text(params: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = params.get(name, default)
    if not isinstance(value, str) or len(value) > 1000:
        raise InvalidParamsError(message=f"{name} must be a text")
    return value


def _whole(params: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = params.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidParamsError(message=f"{name} must be a whole number from {least} to {most}")
    return value
