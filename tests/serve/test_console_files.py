"""The console's files: security headers, client routes, and nothing outside the directory."""

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.serve.console_files import ConsoleFiles

PAGE = '<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__">'


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    directory = tmp_path / "console"
    (directory / "assets").mkdir(parents=True)
    (directory / "index.html").write_text(PAGE)
    (directory / "assets" / "app-1a2b.js").write_text("run()")
    (tmp_path / "secret.txt").write_text("secret")
    return TestClient(Starlette(routes=ConsoleFiles(directory).routes()))


def test_each_page_has_a_nonce_of_its_own_for_its_styles_only(client: TestClient) -> None:
    first, second = client.get("/"), client.get("/calls/123?tool=bash")

    nonces = [re.search(r'content="([^"]+)"', each.text)[1] for each in (first, second)]  # type: ignore[index]
    policy = first.headers["content-security-policy"]
    assert len({*nonces, "__CSP_NONCE__"}) == 3
    assert f"style-src 'self' 'nonce-{nonces[0]}'" in policy
    assert ("script-src 'self';" in policy, "unsafe" in policy, "frame-ancestors 'none'" in policy) == (
        True,
        False,
        True,
    )


def test_the_page_offers_a_login_with_the_provider_only_if_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<meta name="oidc-login" content="__OIDC_LOGIN__">')
    pages = [
        TestClient(Starlette(routes=ConsoleFiles(tmp_path, **given).routes())).get("/").text
        for given in ({}, {"oidc_login": "/login/oidc"})
    ]

    assert [re.search(r'content="([^"]*)"', page)[1] for page in pages] == ["", "/login/oidc"]  # type: ignore[index]


def test_assets_are_cached_for_good_and_pages_are_not(client: TestClient) -> None:
    asset = client.get("/assets/app-1a2b.js")

    assert (asset.text, "javascript" in asset.headers["content-type"]) == ("run()", True)
    assert ("immutable" in asset.headers["cache-control"], client.get("/").headers["cache-control"]) == (
        True,
        "no-store",
    )


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/%2e%2e/secret.txt", "/assets/../../secret.txt", "/assets/missing.js", "/index.html.bak"],
)
def test_no_path_leads_out_of_the_directory_or_to_a_page_in_place_of_a_file(client: TestClient, path: str) -> None:
    answer = client.get(path)

    assert (answer.status_code, "secret" in answer.text) == (404, False)


async def test_pages_need_no_credential_and_are_refused_under_a_foreign_host(world: World) -> None:
    async with serving(world.reeve()) as server:
        page = await server.client.get("/inbox")
        foreign = await server.client.get("/inbox", headers={"host": "rebound.example"})
        unknown = [await server.client.get(path) for path in ("/api/nope", "/mcp/nope", "/metrics/nope")]

    assert (page.status_code, page.headers["x-frame-options"], foreign.status_code) == (200, "DENY", 421)
    assert [each.status_code for each in unknown] == [404, 404, 404]
