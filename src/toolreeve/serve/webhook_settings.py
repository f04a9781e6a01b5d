"""Webhooks of the configuration file: checked at start, stored like the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.record.webhooks import Webhook
from toolreeve.serve.api.endpoint import invalid
from toolreeve.serve.api.problems import Problem
from toolreeve.serve.api.webhooks import CONFIGURED, WebhookBody, new_webhook

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

SETTING = "serve.webhooks"


def read_webhooks(tables: Sequence[Mapping[str, Any]], reveal: Callable[[str], str]) -> list[Webhook]:
    """Raises ConfigError, which names the webhook."""
    found = [_read(table, reveal) for table in tables]
    names = [hook.id for hook in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two webhooks are called {twice.removeprefix(CONFIGURED)!r}", source=SETTING)
    return found


def _read(table: Mapping[str, Any], reveal: Callable[[str], str]) -> Webhook:
    place = f"{SETTING} {table['name']}"
    lists = {key: list(table[key]) for key in ("events", "without") if key in table}
    given = {key: value for key, value in table.items() if key != "name"} | lists
    try:
        body = WebhookBody.model_validate(given | {"secret": reveal(str(table["secret"]))})
        hook = new_webhook(body, secret=body.secret or "")
    except ValidationError as problem:
        raise ConfigError(invalid(problem, "table", WebhookBody).detail, source=place) from None
    except Problem as problem:
        raise ConfigError(problem.detail, source=place) from None
    return replace(hook, id=f"{CONFIGURED}{table['name']}")


async def store_webhooks(reeve: "Toolreeve", hooks: Sequence[Webhook], *, now: float) -> None:
    """Those that are configured no longer are removed. Raises ConfigError for a URL that the network guard refuses."""
    table = reeve.internals.store.webhooks
    for hook in hooks:
        try:
            reeve.internals.http.screen(hook.url, "POST")
        except ToolError as refusal:
            raise ConfigError(refusal.message, source=SETTING, key="url", fix="see network.allow") from None
    wanted = {hook.id for hook in hooks}
    for stored in await table.list():
        if stored.id.startswith(CONFIGURED) and stored.id not in wanted:
            await table.delete(stored.id)
    for hook in hooks:
        await table.put(hook, now=now)
