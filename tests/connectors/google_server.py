"""A strict local Google: OAuth with PKCE, Gmail and Calendar as they answer."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.network import Answer, Received, WebServer, web_server

CLIENT = ("client-1.apps.example", "client-secret-8842")
SCOPE = "https://www.googleapis.com/auth/"


def answer(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"content-type": "application/json", **headers})


def encode(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(kind: str, text: str | bytes = "", *parts: Any, filename: str = "", **headers: str) -> dict[str, Any]:
    listed = [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items()]
    body = {"size": len(text), "data": encode(text)} if text else {"size": 0}
    return {"mimeType": kind, "filename": filename, "headers": listed, "body": body, "parts": list(parts)}


def mail(message_id: str, payload: dict[str, Any], **headers: str) -> dict[str, Any]:
    payload["headers"] += [{"name": name, "value": value} for name, value in headers.items()]
    return {"id": message_id, "threadId": f"t-{message_id}", "snippet": "It&#39;s here", "payload": payload}


@dataclass
class Google:
    """`failures` are answered instead, in order; `lifetime` is that of new tokens."""

    web: WebServer = field(init=False)
    mails: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, set[str]] = field(default_factory=dict)
    refresh_tokens: dict[str, set[str]] = field(default_factory=dict)
    sent: list[bytes] = field(default_factory=list)
    created: list[tuple[dict[str, Any], dict[str, str]]] = field(default_factory=list)
    failures: list[Answer] = field(default_factory=list)
    refreshes: int = 0
    issued: int = 0
    lifetime: int = 3600

    def respond(self, request: Received) -> Answer:
        target = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        if target.path == "/token":
            return self._token({name: values[0] for name, values in parse_qs(request.body.decode()).items()})
        if target.path == "/revoke":
            form = parse_qs(request.body.decode())
            known = self.refresh_tokens.pop(form["token"][0], None)
            return answer({}, 200 if known is not None else 400)
        granted = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if granted is None:
            return answer({"error": {"code": 401, "message": "Invalid Credentials"}}, 401)
        if self.failures:
            return self.failures.pop(0)
        return self._api(request, target.path, query, granted)

    def _api(self, request: Received, path: str, query: dict[str, str], granted: set[str]) -> Answer:
        messages = "/gmail/v1/users/me/messages"
        events = "/calendar/v3/calendars/primary/events"
        match request.method, path:
            case "GET", _ if path == messages:
                ids = list(self.mails)[: int(query["maxResults"])]
                return self._need(granted, "gmail.readonly", {"messages": [{"id": each} for each in ids]})
            case "POST", _ if path == f"{messages}/send":
                if f"{SCOPE}gmail.send" in granted:
                    self.sent.append(base64.urlsafe_b64decode(json.loads(request.body)["raw"]))
                return self._need(granted, "gmail.send", {"id": "sent-1", "threadId": "t-1", "labelIds": ["SENT"]})
            case "GET", _ if path.startswith(f"{messages}/"):
                found = self.mails.get(path.rpartition("/")[2])
                if found is None:
                    return answer({"error": {"code": 404, "message": "Requested entity was not found."}}, 404)
                return self._need(granted, "gmail.readonly", found)
            case "GET", _ if path == events:
                assert query["singleEvents"] == "true"
                assert query["orderBy"] == "startTime"
                return self._need(
                    granted,
                    "calendar.events.readonly",
                    {"items": list(self.events.values()), "timeZone": "UTC", "asked": query},
                )
            case "GET", _ if path.startswith(f"{events}/"):
                return self._need(granted, "calendar.events.readonly", self.events[path.rpartition("/")[2]])
            case "POST", _ if path == events:
                event = json.loads(request.body)
                self.created.append((event, query))
                made = {**event, "id": "e-new", "htmlLink": "https://calendar.example/e-new"}
                return self._need(granted, "calendar.events", made)
        return answer({"error": {"code": 404, "message": "no such path"}}, 404)

    def _need(self, granted: set[str], scope: str, value: Any) -> Answer:
        if scope == "calendar.events.readonly" and f"{SCOPE}calendar.events" in granted:
            return answer(value)
        if f"{SCOPE}{scope}" not in granted:
            return answer({"error": {"code": 403, "message": "Insufficient Permission"}}, 403)
        return answer(value)

    def authorize(self, url: str, *, grant: bool = True) -> str:
        """What the browser does: checks the request, and gives the redirect."""
        target = urlsplit(url)
        assert target.path == "/o/oauth2/v2/auth"
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT[0]
        assert query["code_challenge_method"] == "S256"
        assert len(query["code_challenge"]) == 43
        assert urlsplit(query["redirect_uri"]).hostname == "127.0.0.1"
        if not grant:
            return f"{query['redirect_uri']}?error=access_denied&state={query['state']}"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?code={code}&state={query['state']}"

    def _token(self, form: dict[str, str]) -> Answer:
        if (form["client_id"], form["client_secret"]) != CLIENT:
            return answer({"error": "invalid_client"}, 401)
        if form["grant_type"] == "refresh_token":
            self.refreshes += 1
            scopes = self.refresh_tokens.get(form["refresh_token"])
            if scopes is None:
                return answer({"error": "invalid_grant", "error_description": "Token has been revoked."}, 400)
            return answer(self._issue(scopes))
        asked = self.codes.pop(form["code"], None)
        if asked is None:
            return answer({"error": "invalid_grant"}, 400)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if digest.decode() != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return answer({"error": "invalid_grant"}, 400)
        scopes = set(asked["scope"].split())
        return answer({**self._issue(scopes), "refresh_token": self.new_refresh_token(scopes)})

    def _issue(self, scopes: set[str]) -> dict[str, Any]:
        token = f"ya29-access-token-{self.issued}"
        self.issued += 1
        self.tokens[token] = scopes
        return {
            "access_token": token,
            "expires_in": self.lifetime,
            "scope": " ".join(sorted(scopes)),
            "token_type": "Bearer",
        }

    def new_refresh_token(self, scopes: set[str]) -> str:
        token = f"refresh-token-{len(self.refresh_tokens)}-secret"
        self.refresh_tokens[token] = scopes
        return token

    def grant(self, *scopes: str, expired: bool = False) -> str:
        """A grant as the secret store holds it after a login."""
        full = {f"{SCOPE}{scope}" for scope in scopes}
        return json.dumps(
            {
                "access_token": self._issue(full)["access_token"],
                "refresh_token": self.new_refresh_token(full),
                "expires_at": 0.0 if expired else 4e9,
                "scopes": sorted(full),
                "client_id": CLIENT[0],
                "issuer": self.web.url("").rstrip("/"),
            }
        )


@asynccontextmanager
async def google_server() -> AsyncIterator[Google]:
    google = Google()
    async with web_server(google.respond) as web:
        google.web = web
        yield google
