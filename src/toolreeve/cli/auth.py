"""`toolreeve auth`: connects, shows and disconnects the accounts of connectors."""

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.core.errors import ErrorCode, ExitStatus, ToolError

if TYPE_CHECKING:
    from toolreeve.connectors.google_account import GoogleGrant, Product
    from toolreeve.runtime.connectors import RuntimeSecrets
    from toolreeve.upstream.oauth.callback import LoginCallback

LOGIN_SECONDS = 300.0


@click.group(cls=CliGroup)
def auth() -> None:
    """Connect, show and disconnect the accounts of connectors."""


@auth.command()
@click.option("--scopes", help="Scopes such as gmail.readonly,calendar.events; by default those of the enabled tools.")
@click.option("--port", type=click.IntRange(1, 65535), help="The loopback port for Google's answer; any by default.")
@click.option("--no-browser", is_flag=True, help="Print the URL, and take the address that the browser ends on.")
def google(scopes: str | None, port: int | None, *, no_browser: bool) -> int:
    """Connect a Google account, one login for each product whose tools are enabled."""
    from toolreeve.connectors.google_account import PRODUCTS

    asked = _scopes_given(scopes) if scopes else _scopes_of_tools(current())
    granted = []
    for product in PRODUCTS:
        if wanted := asked.get(product.name):
            granted.append(
                (product.name, asyncio.run(_log_in(current(), product, wanted, port, no_browser=no_browser)))
            )
    if current().json:
        print_json([{"product": name, "scopes": list(grant.scopes)} for name, grant in granted])
    else:
        for name, grant in granted:
            print_text(f"connected {name}: {_short(grant.scopes)}")
    return ExitStatus.OK


def _scopes_given(text: str) -> dict[str, tuple[str, ...]]:
    """By product. Raises UsageError for a scope of none."""
    from toolreeve.connectors.google_account import PRODUCTS, SCOPE

    found: dict[str, tuple[str, ...]] = {}
    for scope in filter(None, (each.strip().removeprefix(SCOPE) for each in text.replace(",", " ").split())):
        product = next((each.name for each in PRODUCTS if scope.split(".")[0] == each.name), "")
        if not product:
            raise click.UsageError(f"--scopes: {scope!r} belongs to no connector; use gmail.… or calendar.…")
        found[product] = (*found.get(product, ()), scope)
    return found


def _scopes_of_tools(options: Options) -> dict[str, tuple[str, ...]]:
    """The least that the enabled tools need, by product. Raises ToolError if none can be enabled."""
    from toolreeve.connectors.google_account import PRODUCTS
    from toolreeve.runtime.connectors import select_connectors

    selection = select_connectors(options.configuration())
    tools = [name for _, names in selection.chosen for name in names]
    found = {product.name: product.scopes(tools) for product in PRODUCTS if product.scopes(tools)}
    if not found:
        lacking = next(each for each in selection.unavailable if each.name.startswith(("gmail", "calendar")))
        remedy = "".join(f"\n  {command}" for command in lacking.commands)
        raise ToolError(
            ErrorCode.PERMISSION, f"no Google tool is enabled: {lacking.name} lacks {lacking.lacks}{remedy}"
        )
    return found


async def _log_in(
    options: Options, product: "Product", scopes: Sequence[str], port: int | None, *, no_browser: bool
) -> "GoogleGrant":
    from toolreeve.connectors.google_login import log_in
    from toolreeve.guard.network.client import GuardedHttp
    from toolreeve.runtime.build import new_network_guard
    from toolreeve.runtime.connectors import service_urls
    from toolreeve.upstream.oauth.callback import LoginFailed, listen_for_callback

    configuration = options.configuration()
    urls = service_urls(configuration)
    urls.check()
    async with AsyncExitStack() as stack:
        http = GuardedHttp(new_network_guard(configuration))
        stack.push_async_callback(http.close)
        try:
            callback = await stack.enter_async_context(listen_for_callback(port))
        except OSError as problem:
            raise click.UsageError(f"--port {port}: {problem.strerror}") from None

        async def show(url: str) -> None:
            await _show(product.name, url, callback, no_browser=no_browser)

        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                return await log_in(
                    product,
                    scopes,
                    urls=urls,
                    callback=callback,
                    show=show,
                    http=http,
                    secrets=_secrets(options),
                    now=time.time,
                )
        except LoginFailed as problem:
            raise ToolError(ErrorCode.PERMISSION, str(problem)) from None
        except TimeoutError:
            raise ToolError(ErrorCode.TIMEOUT, f"no login within {LOGIN_SECONDS:g} s") from None


async def _show(product: str, url: str, callback: "LoginCallback", *, no_browser: bool) -> None:
    import webbrowser

    note(f"open this URL to connect {product}: {url}")
    if not no_browser:
        await asyncio.to_thread(webbrowser.open, url)
        return
    note("then paste the address that the browser ends on (the page itself need not load):")
    callback.paste(await asyncio.to_thread(sys.stdin.readline))


@auth.command()
def status() -> int:
    """Show which accounts are connected, with which scopes."""
    rows = asyncio.run(_status(current()))
    if current().json:
        print_json(rows)
    else:
        shown = [(str(row["product"]), str(row["state"]), _short(row["scopes"])) for row in rows]
        print_table(current(), ("product", "state", "scopes"), shown)
    return ExitStatus.OK


async def _status(options: Options) -> list[dict[str, object]]:
    from toolreeve.connectors.google_account import PRODUCTS

    found = [(product.name, await _grant(options, product)) for product in PRODUCTS]
    return [
        {
            "product": name,
            "state": "connected" if grant else "not connected; run `toolreeve auth google`",
            "scopes": list(grant.scopes) if grant else [],
        }
        for name, grant in found
    ]


@auth.command()
@click.argument("product", type=click.Choice(["gmail", "calendar", "google"]))
def revoke(product: str) -> int:
    """Disconnect a product, or all of google: delete the tokens here and have Google revoke them."""
    from toolreeve.connectors.google_account import PRODUCTS

    chosen = [each for each in PRODUCTS if product in (each.name, "google")]
    results = [asyncio.run(_revoke(current(), each)) for each in chosen]
    if current().json:
        print_json(results)
        return ExitStatus.OK
    for result in results:
        done = "is disconnected" if result["held"] else "was not connected"
        print_text(f"{result['product']} {done}{'; its tokens are revoked' if result['revoked'] else ''}")
        if result["why"]:
            note(f"the tokens are deleted here, but not revoked: {result['why']}")
    return ExitStatus.OK


async def _revoke(options: Options, product: "Product") -> dict[str, object]:
    from toolreeve.connectors.google_account import GoogleGrant
    from toolreeve.connectors.google_login import revoke as revoke_grant
    from toolreeve.guard.network.client import GuardedHttp
    from toolreeve.runtime.build import new_network_guard

    source = options.configuration().secret_source
    stored = source.find(product.secret)
    removed = [store.remove(product.secret) for store in source.stores()]
    grant = GoogleGrant.read(stored) if stored else None
    if grant is None:
        return {"product": product.name, "held": any(removed), "revoked": False, "why": ""}
    http = GuardedHttp(new_network_guard(options.configuration()))
    try:
        why = await revoke_grant(grant, http)
    finally:
        await http.close()
    return {"product": product.name, "held": True, "revoked": not why, "why": why}


async def _grant(options: Options, product: "Product") -> "GoogleGrant | None":
    """None as well if the client that the grant belongs to is not configured any more."""
    from toolreeve.connectors.google_account import GoogleAccount
    from toolreeve.runtime.connectors import service_urls

    try:
        return await GoogleAccount(product, service_urls(options.configuration())).load(_secrets(options))
    except ToolError:
        return None


def _secrets(options: Options) -> "RuntimeSecrets":
    from toolreeve.core.secrets.redactor import Redactor
    from toolreeve.runtime.connectors import RuntimeSecrets

    configuration = options.configuration()
    return RuntimeSecrets(configuration.secret_source, Redactor(configuration.secrets))


def _short(scopes: object) -> str:
    from toolreeve.connectors.google_account import SCOPE

    return ", ".join(str(each).removeprefix(SCOPE) for each in scopes) if isinstance(scopes, list | tuple) else ""
