"""Usage and cost reports of an Anthropic organisation.

Money is exact: amounts come as cents in decimal text and are shown as dollars in decimal text, never as floats.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from toolreeve.connectors.api import ApiClient, SecretHeader, invalid_parameter
from toolreeve.connectors.catalogue import ServiceUrls
from toolreeve.connectors.service_tools import ServiceTools
from toolreeve.core.context import Context
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.labels import Confidentiality
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, Arguments
from toolreeve.tools.http import object_schema

MAX_PAGES = 50
TOP = 5
_SECRET = "ANTHROPIC_ADMIN_KEY"  # noqa: S105 - its name
_PATHS = {
    ("usage", "reports"): "/v1/organizations/usage_report/messages",
    ("cost", "reports"): "/v1/organizations/cost_report",
    ("claude_code", "reports"): "/v1/organizations/usage_report/claude_code",
    ("usage", "analytics"): "/v1/organizations/analytics/usage",
    ("cost", "analytics"): "/v1/organizations/analytics/cost",
}
_DIGITS = 40
"""Of an amount: `1e999999999` would be written out as a text of a gigabyte."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_GROUPS = ("model", "description", "workspace_id", "api_key_id", "cost_type", "product", "actor")


def new_tools(urls: ServiceUrls) -> Sequence[AnyFunctionTool]:
    client = ApiClient(
        title="The Anthropic Admin API",
        base=urls.anthropic,
        credential=SecretHeader("x-api-key", _SECRET),
        remedy=f"it needs an admin key (sk-ant-admin…): run `toolreeve secrets set {_SECRET}`",
        extra_headers={"anthropic-version": "2023-06-01"},
    )
    service = ServiceTools("anthropic", "usage", urls.anthropic)

    @service.tool(
        screen=lambda args, _: _check(args),
        timeout=300,
        input_schema=object_schema(
            ["action", "starting_at"],
            action={"enum": ["usage", "cost", "claude_code"], "description": "Which report."},
            starting_at={"type": "string", "description": "2026-01-01T00:00:00Z; for claude_code one day, 2026-01-01."},
            ending_at={"type": ["string", "null"], "default": None, "description": "Not for claude_code."},
            bucket_width={"enum": ["1m", "1h", "1d", None], "default": None, "description": "cost: 1d only."},
            group_by={"type": "array", "items": {"type": "string"}, "default": [], "description": "Such as model."},
            limit={"type": ["integer", "null"], "minimum": 1, "default": None, "description": "The most rows."},
            source={
                "enum": ["reports", "analytics"],
                "default": "reports",
                "description": "analytics: the newer endpoints, for usage and cost.",
            },
        ),
    )
    async def anthropic_usage(
        ctx: Context,
        action: str,
        starting_at: str,
        ending_at: str | None = None,
        bucket_width: str | None = None,
        group_by: Sequence[str] = (),
        limit: int | None = None,
        source: str = "reports",
    ) -> Output:
        """Report the token usage, the cost or the Claude Code activity of an Anthropic organisation."""
        width = "time_bucket_width" if source == "analytics" else "bucket_width"
        params = {"starting_at": starting_at, "ending_at": ending_at, width: bucket_width}
        params["group_by[]"] = list(group_by) or None  # type: ignore[assignment]
        rows, is_cut = await _rows(client, ctx, _PATHS[action, source], params, limit)
        exact = [_with_dollars(row) for row in rows]
        data: dict[str, Any] = {
            "report_type": action,
            "source": source,
            "summary": _summarize(exact),
            "data": exact,
            "count": len(exact),
        }
        return Output(data=data | ({"more": True} if is_cut else {}), labels=(Confidentiality.PRIVATE.value,))

    return (anthropic_usage,)


def _check(args: Arguments) -> None:
    """Raises ToolError(INVALID_PARAMS) for what the endpoint does not take."""
    action = args["action"]
    is_day = bool(_DAY.fullmatch(str(args["starting_at"])))
    if action == "claude_code":
        if not is_day:
            raise invalid_parameter("starting_at", "claude_code takes one day, such as 2026-01-01")
        for name in ("ending_at", "bucket_width", "group_by"):
            if args.get(name):
                raise invalid_parameter(name, "claude_code reports one day as a whole; leave it out")
        if args.get("source") == "analytics":
            raise invalid_parameter("source", "analytics has usage and cost, not claude_code")
    elif is_day:
        raise invalid_parameter("starting_at", f"{action} takes a time such as {args['starting_at']}T00:00:00Z")
    if action == "cost" and args.get("bucket_width") not in (None, "1d") and args.get("source") != "analytics":
        raise invalid_parameter("bucket_width", "cost is reported by day (1d) only")


async def _rows(
    client: ApiClient, ctx: Context, path: str, params: Mapping[str, Any], limit: int | None
) -> tuple[list[Mapping[str, Any]], bool]:
    """All rows up to the limit, and whether there are more."""
    rows: list[Mapping[str, Any]] = []
    page: str | None = None
    for _ in range(MAX_PAGES):
        found = await client.get_object(ctx, path, {**params, "page": page})
        listed = found.get("data")
        if not isinstance(listed, list):
            raise ToolError(ErrorCode.UPSTREAM, f"{client.title} returned no rows")
        rows += [each for each in listed if isinstance(each, Mapping)]
        following = found.get("next_page")
        has_more = bool(found.get("has_more")) and isinstance(following, str) and following != page
        if limit is not None and len(rows) >= limit:
            return rows[:limit], has_more or len(rows) > limit
        if not has_more:
            return rows, False
        page = following
    return rows, True


def _with_dollars(value: Any) -> Any:
    """The row with `amount_usd` beside every amount in cents."""
    if isinstance(value, list):
        return [_with_dollars(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    row = {key: _with_dollars(each) for key, each in value.items()}
    for key, name in (("amount", "amount_usd"), ("list_amount", "list_amount_usd")):
        dollars = _dollars(value.get(key)) if value.get("currency", "USD") == "USD" else None
        if dollars is not None:
            row[name] = format(dollars, "f")
    return row


def _dollars(cents: Any) -> Decimal | None:
    if isinstance(cents, bool) or not isinstance(cents, str | int | float):
        return None
    try:
        amount = Decimal(str(cents))
    except InvalidOperation:
        return None
    return amount.scaleb(-2) if amount.is_finite() and abs(amount.adjusted()) < _DIGITS else None


def _summarize(rows: Sequence[Any]) -> dict[str, Any]:
    """Totals of all numbers, and the five largest groups."""
    totals: defaultdict[str, int] = defaultdict(int)
    money = Decimal(0)
    groups: defaultdict[str, Decimal] = defaultdict(Decimal)
    for result in _results(rows):
        tokens = dict(_counts(result))
        for name, number in tokens.items():
            totals[name] += number
        amount = sum(_amounts(result), Decimal(0))
        money += amount
        group = next((str(result[key]) for key in _GROUPS if isinstance(result.get(key), str)), "all")
        groups[group] += amount or Decimal(sum(tokens.values()))
    top = sorted(groups.items(), key=lambda each: -each[1])[:TOP]
    summary: dict[str, Any] = {
        "totals": dict(totals),
        "top": [{"group": name, "value": format(size, "f")} for name, size in top],
    }
    return summary | ({"amount_usd": format(money, "f")} if money else {})


def _results(rows: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """The entries of all buckets: `results` of the older reports, `model_breakdown` of claude_code, or the row."""
    for row in rows:
        inner = row.get("results", row.get("model_breakdown"))
        listed = inner if isinstance(inner, list) else [row]
        for each in listed:
            if isinstance(each, Mapping):
                group = each.get("group")
                yield {**each, **group} if isinstance(group, Mapping) else each


def _counts(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    """Numbers by name, nested ones such as cache_creation too; without money."""
    for key, each in value.items():
        if isinstance(each, Mapping) and "amount" not in each and key != "group":
            yield from _counts(each, f"{prefix}{key}.")
        elif isinstance(each, int) and not isinstance(each, bool) and "amount" not in key:
            yield f"{prefix}{key}", each


def _amounts(value: Mapping[str, Any]) -> Iterator[Decimal]:
    if isinstance(text := value.get("amount_usd"), str):
        yield Decimal(text)
    cost = value.get("estimated_cost")
    if isinstance(cost, Mapping) and isinstance(text := cost.get("amount_usd"), str):
        yield Decimal(text)
