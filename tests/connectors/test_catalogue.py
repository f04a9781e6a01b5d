import pytest

from tests.connectors.connected import Connected, connected_settings
from tests.network import WebServer, web_server
from toolreeve.config import Connectors
from toolreeve.connectors.catalogue import CONNECTORS, GOOGLE_CLIENT, Selection, ServiceUrls, select
from toolreeve.core.errors import ConfigError

HTTPS = "https://service.example"


def selected(*enabled: str, secrets: tuple[str, ...] = (), in_keyring: tuple[str, ...] = ()) -> Selection:
    cheap = dict.fromkeys(secrets, "value")
    return select(enabled, {**cheap, **dict.fromkeys(in_keyring, "value")}.get, cheap.get)


def names(selection: Selection) -> set[str]:
    return {name for _, chosen in selection.chosen for name in chosen}


def test_nothing_is_chosen_without_secrets_and_each_tool_says_what_it_lacks() -> None:
    selection = selected()

    assert names(selection) == set()
    assert {each.name for each in selection.unavailable} == {name for each in CONNECTORS for name in each.tools}
    lacking = {each.name: each for each in selection.unavailable}
    assert lacking["gmail_send"].lacks == "the secrets GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET"
    assert lacking["gmail_send"].commands == (
        "toolreeve secrets set GOOGLE_CLIENT_ID",
        "toolreeve secrets set GOOGLE_CLIENT_SECRET",
        "toolreeve auth google",
    )
    assert lacking["linkedin_jobs"].lacks == '"linkedin_jobs" in connectors.enabled'
    assert "terms" in lacking["linkedin_jobs"].note
    assert lacking["github_comment"].lacks == '"github_comment" in connectors.enabled and the secret GITHUB_TOKEN'
    assert lacking["github_comment"].commands == ("toolreeve secrets set GITHUB_TOKEN",)


def test_secrets_are_enough_but_not_for_what_must_be_asked_for() -> None:
    assert names(selected(secrets=(*GOOGLE_CLIENT, "GITHUB_TOKEN"))) == {
        "gmail_search",
        "gmail_read",
        "gmail_send",
        "calendar_list_events",
        "calendar_get_event",
        "calendar_create_event",
    }


def test_only_named_tools_are_chosen_and_only_for_them_the_keyring_is_opened() -> None:
    assert names(selected(in_keyring=GOOGLE_CLIENT)) == set()
    assert names(selected("gmail_search", "linkedin_*", in_keyring=GOOGLE_CLIENT)) == {
        "gmail_search",
        "linkedin_jobs",
        "linkedin_job_detail",
    }


def test_a_name_that_no_tool_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="gmial_"):
        selected("gmial_*")


@pytest.mark.parametrize("url", ["http://service.example", "ftp://service.example", "http://10.0.0.1"])
def test_credentials_travel_unencrypted_only_within_the_machine(url: str) -> None:
    urls = dict.fromkeys(ServiceUrls.__slots__, HTTPS)

    ServiceUrls(**{**urls, "gmail": "http://127.0.0.1:9"}).check()
    with pytest.raises(ConfigError, match=r"connectors\.gmail_url"):
        ServiceUrls(**{**urls, "gmail": url}).check()


def test_every_connector_makes_the_tools_that_it_lists() -> None:
    urls = ServiceUrls(**dict.fromkeys(ServiceUrls.__slots__, HTTPS))

    for connector in CONNECTORS:
        assert {each.name for each in connector.new_tools(urls)} == set(connector.tools)


async def test_a_runtime_has_only_what_is_configured(connected: Connected) -> None:
    async with web_server() as web:
        connected.keep({"ANTHROPIC_ADMIN_KEY": "sk-ant-admin-1234"})
        assert registered(connected, web) == {"anthropic_usage"}
        assert registered(connected, web, "gmail_*") == set()
        assert registered(connected, web, "linkedin_jobs") == {"linkedin_jobs"}


def registered(connected: Connected, web: WebServer, *enabled: str) -> set[str]:
    settings = connected_settings(connected.world, web, *enabled)
    assert isinstance(settings.connectors, Connectors)
    reeve = connected.world.reeve(settings=settings)
    listed = {name for each in CONNECTORS for name in each.tools}
    return {each.spec.name for each in reeve.tools.list()} & listed
