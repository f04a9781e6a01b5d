"""The table `oauth` of a server: checked key by key."""

from pathlib import Path
from typing import Any

import pytest

from toolreeve.config.mcp_servers.expansion import Surroundings
from toolreeve.config.mcp_servers.reader import Origin, parse_servers
from toolreeve.core.errors import ConfigError
from toolreeve.upstream.oauth.settings import OAuthSettings


def parse(given: dict[str, Any] | None) -> OAuthSettings:
    return OAuthSettings.parse(given, source="toolreeve.toml:3", server="web")


def test_nothing_given_is_the_ordinary_login() -> None:
    assert parse(None) == parse({}) == OAuthSettings()


def test_scopes_are_a_text_or_a_list() -> None:
    assert parse({"scopes": ["a", "b"]}).scopes == parse({"scopes": "a b"}).scopes == "a b"


def test_a_secret_is_not_shown() -> None:
    assert "hush" not in repr(parse({"client_id": "us", "client_secret": "hush"}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"clientId": "x"}, "web.oauth.clientId"),
        ({"client_id": ""}, "must be a text"),
        ({"client_id": 5}, "must be a text"),
        ({"scopes": 5}, "list of texts"),
        ({"scopes": ["a", 5]}, "list of texts"),
        ({"redirect_port": 0}, "must be a port"),
        ({"redirect_port": True}, "must be a port"),
        ({"redirect_port": 70000}, "must be a port"),
        ({"grant": "password"}, "must be one of authorization_code, client_credentials"),
        ({"grant": "client_credentials"}, "needs a registered client"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "must be one of none"),
        ({"client_metadata_url": "http://a.example/x"}, "must be an https URL"),
        ({"client_metadata_url": "https://a.example"}, "must be an https URL"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(given)

    assert said in str(caught.value)
    assert "toolreeve.toml:3" in str(caught.value)


def test_an_invalid_key_leaves_that_server_out_and_is_named_with_its_line() -> None:
    known = Surroundings(environ={}, secret=lambda _: None, workspace="/work", home="/home/ada")
    document = {
        "mcp_servers": {
            "bad": {"url": "https://a.example/mcp", "oauth": {"client": "x"}},
            "good": {"url": "https://b.example/mcp", "oauth": {"client_id": "x"}},
        }
    }

    found = parse_servers(document, Origin(source="toolreeve.toml", base=Path("/work"), own=True), known)

    assert [spec.name for spec in found.specs] == ["good"]
    assert [problem.key for problem in found.problems] == ["mcp_servers.bad.oauth.client"]
