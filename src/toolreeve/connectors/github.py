"""GitHub: list and read issues and pull requests, and comment on them.

Anybody may write an issue, so what is read is untrusted. A comment is seen by everybody who sees the repository.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.connectors.api import PRIVATE, ApiClient, SecretHeader, objects
from toolreeve.connectors.catalogue import ServiceUrls
from toolreeve.connectors.service_tools import ServiceTools
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool
from toolreeve.core.urls import encode_segment
from toolreeve.tools.http import object_schema

PAGE = 100
MAX_COMMENTS = 300
_REPO = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$",
    "x-authority": "destination",
    "description": "The repository, as owner/name.",
}
_NUMBER = {"type": "integer", "minimum": 1, "description": "Of the issue or pull request."}


def new_tools(urls: ServiceUrls) -> Sequence[AnyFunctionTool]:
    client = ApiClient(
        title="GitHub",
        base=urls.github,
        credential=SecretHeader("authorization", "GITHUB_TOKEN", prefix="Bearer "),
        remedy="run `toolreeve secrets set GITHUB_TOKEN`",
        extra_headers={"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"},
    )
    service = ServiceTools("github", "github", urls.github)

    @service.tool(
        input_schema=object_schema(
            ["repo"],
            repo=_REPO,
            state={"enum": ["open", "closed", "all"], "default": "open"},
            kind={"enum": ["all", "issues", "pulls"], "default": "all"},
            labels={"type": "string", "default": "", "description": "Only with all of these, separated by commas."},
            limit={"type": "integer", "minimum": 1, "maximum": PAGE, "default": 20},
        ),
    )
    async def github_list_issues(
        ctx: Context, repo: str, state: str = "open", kind: str = "all", labels: str = "", limit: int = 20
    ) -> Output:
        """List the issues and pull requests of a repository, newest first."""
        params = {"state": state, "labels": labels or None, "per_page": PAGE if kind != "all" else limit}
        found = await client.get(ctx, f"{_path(repo)}/issues", params)
        rows = [_summary(each) for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
        wanted = [row for row in rows if kind == "all" or (row["kind"] == "pull request") == (kind == "pulls")][:limit]
        return Output(data={"issues": wanted, "count": len(wanted)}, labels=PRIVATE)

    @service.tool(
        input_schema=object_schema(["repo", "number"], repo=_REPO, number=_NUMBER),
    )
    async def github_read_issue(ctx: Context, repo: str, number: int) -> Output:
        """Read an issue or pull request with its comments."""
        path = f"{_path(repo)}/issues/{number}"
        issue = await client.get_object(ctx, path)
        comments = await _comments(client, ctx, path) if issue.get("comments") else []
        data = {**_summary(issue), "body": _text(issue, "body"), "comments": comments}
        return Output(data=data, truncated=False, labels=PRIVATE)

    @service.tool(
        danger=DangerLevel.HIGH,
        sends=lambda args: (f"{args.get('repo')}#{args.get('number')}",),
        preview=lambda args: f"Comment on {args['repo']}#{args['number']}:\n\n{args['body']}",
        input_schema=object_schema(
            ["repo", "number", "body"],
            repo=_REPO,
            number=_NUMBER,
            body={"type": "string", "minLength": 1, "maxLength": 65536, "description": "Markdown."},
        ),
    )
    async def github_comment(ctx: Context, repo: str, number: int, body: str) -> Output:
        """Comment on an issue or pull request, as the user."""
        made = await client.post(ctx, f"{_path(repo)}/issues/{number}/comments", {"body": body})
        return Output(data={"id": made.get("id"), "url": _text(made, "html_url")}, labels=PRIVATE)

    return github_list_issues, github_read_issue, github_comment


def _path(repo: str) -> str:
    owner, _, name = repo.partition("/")
    return f"/repos/{encode_segment(owner)}/{encode_segment(name)}"


async def _comments(client: ApiClient, ctx: Context, path: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for page in range(1, MAX_COMMENTS // PAGE + 1):
        listed = await client.get(ctx, f"{path}/comments", {"per_page": PAGE, "page": page})
        rows = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
        found += [
            {"author": _author(each), "at": _text(each, "created_at"), "body": _text(each, "body")} for each in rows
        ]
        if len(rows) < PAGE:
            break
    return found


def _summary(issue: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": issue.get("number"),
        "kind": "pull request" if "pull_request" in issue else "issue",
        "title": _text(issue, "title"),
        "state": _text(issue, "state"),
        "author": _author(issue),
        "createdAt": _text(issue, "created_at"),
        "labels": [_text(each, "name") for each in objects(issue, "labels")],
        "url": _text(issue, "html_url"),
    }


def _author(found: Mapping[str, Any]) -> str:
    return _text(found.get("user"), "login")


def _text(found: Any, key: str) -> str:
    value = found.get(key) if isinstance(found, Mapping) else None
    return value if isinstance(value, str) else ""
