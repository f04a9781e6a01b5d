import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.urls import parse_url
from toolreeve.guard.cookies import COOKIES_PER_HOST, SESSIONS, CookieJars, parse_cookie

HTTPS = parse_url("https://a.example/dir/page")
HTTP = parse_url("http://a.example/dir/page")


def jar_with(*lines: str) -> CookieJars:
    jars = CookieJars()
    for line in lines:
        jars.keep("s", HTTPS, line, 100.0)
    return jars


def test_a_cookie_goes_back_to_the_host_that_set_it_in_the_same_session() -> None:
    jars = jar_with("id=1; Path=/", "theme=dark; Path=/")

    assert jars.header("s", HTTPS, 100.0) == "id=1; theme=dark"
    assert jars.header("another session", HTTPS, 100.0) == ""


@pytest.mark.parametrize("url", ["https://b.example/", "https://sub.a.example/", "https://example/"])
def test_a_cookie_never_goes_to_another_host_whatever_its_domain(url: str) -> None:
    assert jar_with("id=1; Domain=.example; Path=/").header("s", parse_url(url), 100.0) == ""


def test_a_cookie_stays_below_its_path() -> None:
    jars = jar_with("id=1")

    assert jars.header("s", parse_url("https://a.example/dir/x?y"), 100.0) == "id=1"
    assert jars.header("s", parse_url("https://a.example/dirx"), 100.0) == ""
    assert jars.header("s", parse_url("https://a.example/"), 100.0) == ""


def test_a_secure_cookie_is_not_sent_or_taken_in_the_clear() -> None:
    jars = jar_with("id=1; Secure; Path=/")
    jars.keep("s", HTTP, "other=2; Secure; Path=/", 100.0)

    assert jars.header("s", HTTP, 100.0) == ""
    assert jars.header("s", HTTPS, 100.0) == "id=1"


def test_a_cookie_ends_with_its_age_or_date_and_can_be_taken_back() -> None:
    jars = jar_with("a=1; Max-Age=10; Path=/", "b=2; Expires=Thu, 01 Jan 1970 00:03:20 GMT; Path=/", "c=3; Path=/")

    assert jars.header("s", HTTPS, 105.0) == "a=1; b=2; c=3"
    assert jars.header("s", HTTPS, 150.0) == "b=2; c=3"
    jars.keep("s", HTTPS, "c=; Max-Age=0; Path=/", 150.0)
    assert jars.header("s", HTTPS, 250.0) == ""


def test_what_is_kept_is_bounded() -> None:
    jars = jar_with(*(f"c{number}=x; Path=/" for number in range(200)))
    assert len(jars.header("s", HTTPS, 100.0).split("; ")) == COOKIES_PER_HOST

    for number in range(SESSIONS):
        jars.keep(f"session {number}", HTTPS, "a=1; Path=/", 100.0)
    assert jars.header("s", HTTPS, 100.0) == ""


def test_a_session_can_be_forgotten() -> None:
    jars = jar_with("id=1; Path=/")
    jars.forget("s")
    assert jars.header("s", HTTPS, 100.0) == ""


@given(st.text(max_size=80))
def test_any_line_is_a_cookie_without_surprises_or_none(line: str) -> None:
    cookie = parse_cookie(line, HTTPS, 0.0)
    if cookie is not None:
        pair = f"{cookie.name}={cookie.value}"
        assert pair.isascii()
        assert pair.isprintable()
        assert ";" not in pair
