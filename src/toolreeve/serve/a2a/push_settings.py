"""Push configurations with all their keys, as they are sent and stored."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from a2a.types import StreamResponse, TaskPushNotificationConfig, TaskState
from a2a.utils.errors import InvalidParamsError
from pydantic import Field, ValidationError

from toolreeve.record.webhooks import RetryConfig, Webhook
from toolreeve.serve.api.endpoint import Body, invalid
from toolreeve.serve.api.problems import Problem
from toolreeve.serve.api.webhooks import RetryBody, WebhookBody, new_webhook

LEVELS = ("low", "normal", "high")
KINDS = {"artifact": "low", "status_change": "normal", "input_provided": "normal", "input_required": "high"}
"""The kinds of notifications, each with its priority."""
Level = Literal["low", "normal", "high"]
ShortText = Annotated[str, Field(max_length=2000)]


class PushAuthentication(Body):
    """Either `schemes` (or `scheme`) with `credentials`, or a `type` with its own keys."""

    scheme: str | None = None
    schemes: list[str] = Field(default_factory=list, max_length=1)
    credentials: ShortText = ""
    type: Literal["bearer", "apikey", "custom"] | None = None
    token: ShortText = ""
    headerName: str | None = None
    apiKey: ShortText = ""
    headerValue: ShortText = ""

    def headers(self) -> dict[str, str]:
        match self.type:
            case "bearer":
                return {"authorization": f"Bearer {self.token or self.credentials}"}
            case "apikey":
                return {(self.headerName or "x-api-key").lower(): self.apiKey}
            case "custom":
                return {(self.headerName or "").lower(): self.headerValue}
        scheme = self.scheme or next(iter(self.schemes), "Bearer")
        return {"authorization": f"{scheme} {self.credentials}"}


class PushRetry(Body):
    maxAttempts: int = 5
    initialDelay: Annotated[float, Field(strict=False)] = 1.0
    maxDelay: Annotated[float, Field(strict=False)] = 300.0
    backoffMultiplier: Annotated[float, Field(strict=False)] = 2.0
    jitter: bool = True


class PushSettings(Body):
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,64}$")] = ""
    url: ShortText
    token: ShortText = ""
    authentication: PushAuthentication | None = None
    enabledEvents: list[str] = Field(default_factory=list, max_length=50)
    disabledEvents: list[str] = Field(default_factory=list, max_length=50)
    quietHoursStart: str | None = None
    quietHoursEnd: str | None = None
    quietHoursTimezone: str = "UTC"
    minPriority: Level = "low"
    maxPriority: Level = "high"
    retryConfig: PushRetry = PushRetry()

    def to_webhook(self) -> Webhook:
        """Its signature is made with the token. Raises InvalidParamsError."""
        headers = self.authentication.headers() if self.authentication else {}
        if self.token:
            headers["x-a2a-notification-token"] = self.token
        try:
            retry = RetryBody(
                max_attempts=self.retryConfig.maxAttempts,
                initial_delay=self.retryConfig.initialDelay,
                max_delay=self.retryConfig.maxDelay,
                multiplier=self.retryConfig.backoffMultiplier,
                jitter=self.retryConfig.jitter,
            )
            body = WebhookBody(
                url=self.url,
                events=self._kinds(),
                quiet_start=self.quietHoursStart,
                quiet_end=self.quietHoursEnd,
                timezone=self.quietHoursTimezone,
                headers=headers,
                retry=retry,
            )
            return new_webhook(body, secret=self.token or secrets.token_urlsafe(32))
        except ValidationError as problem:
            raise InvalidParamsError(message=invalid(problem, "push configuration", WebhookBody).detail) from None
        except Problem as problem:
            raise InvalidParamsError(message=problem.detail) from None

    def _kinds(self) -> list[str]:
        named = (*self.enabledEvents, *self.disabledEvents)
        if unknown := next((each for each in named if each not in KINDS), None):
            raise InvalidParamsError(message=f"no notification is of kind {unknown!r:.60}; kinds: {', '.join(KINDS)}")
        wanted = set(self.enabledEvents or KINDS) - set(self.disabledEvents)
        levels = LEVELS[LEVELS.index(self.minPriority) : LEVELS.index(self.maxPriority) + 1]
        found = [kind for kind, level in KINDS.items() if kind in wanted and level in levels]
        if not found:
            raise InvalidParamsError(message="the events and priorities of the push configuration leave no event")
        return found


OWN_KEYS = PushSettings.model_fields.keys() - {"id", "url", "token", "authentication"}
"""What the specification does not have."""


def read_push_settings(value: Any) -> PushSettings:
    """Raises InvalidParamsError."""
    try:
        return PushSettings.model_validate(value)
    except ValidationError as problem:
        raise InvalidParamsError(message=invalid(problem, "push configuration", PushSettings).detail) from None


def refuse_ignored_keys(params: Any) -> None:
    """For requests that the SDK reads: it would drop these keys without a word. Raises InvalidParamsError."""
    for config in _configs(params):
        if lost := sorted(OWN_KEYS & config.keys()):
            raise InvalidParamsError(message=f"{lost[0]} is taken by tasks/pushNotificationConfig/set only")


def _configs(params: Any) -> list[Mapping[str, Any]]:
    if not isinstance(params, Mapping):
        return []
    configuration = params.get("configuration")
    inner = configuration if isinstance(configuration, Mapping) else {}
    found = (params, inner.get("pushNotificationConfig"), inner.get("taskPushNotificationConfig"))
    return [each for each in found if isinstance(each, Mapping)]


def of_message(config: TaskPushNotificationConfig) -> PushSettings:
    """Raises InvalidParamsError."""
    given: dict[str, Any] = {"id": config.id, "url": config.url, "token": config.token}
    if config.HasField("authentication"):
        parts = config.authentication
        given["authentication"] = {"scheme": parts.scheme, "credentials": parts.credentials}
    return read_push_settings(given)


def show_settings(hook: Webhook, number: str) -> Mapping[str, Any]:
    """Without the token and the credentials."""
    shown: dict[str, Any] = {"id": number, "url": hook.url, "enabledEvents": list(hook.events)}
    if hook.quiet_start:
        hours = {"Start": hook.quiet_start, "End": hook.quiet_end, "Timezone": hook.timezone}
        shown |= {f"quietHours{key}": value for key, value in hours.items()}
    if hook.retry != RetryConfig():
        names = ("maxAttempts", "initialDelay", "maxDelay", "backoffMultiplier", "jitter")
        shown["retryConfig"] = dict(zip(names, asdict(hook.retry).values(), strict=True))
    return shown


def kind_of(response: StreamResponse) -> str:
    if response.HasField("artifact_update"):
        return "artifact"
    status = response.status_update.status
    if status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
        return "input_required"
    continued = status.state == TaskState.TASK_STATE_WORKING and not status.HasField("message")
    return "input_provided" if continued else "status_change"
