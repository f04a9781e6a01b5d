import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.urls import Target, join_url, parse_host, parse_url


def refusal(url: str) -> str:
    with pytest.raises(ToolError) as caught:
        parse_url(url)
    assert caught.value.code is ErrorCode.URL_FORBIDDEN
    return caught.value.message


def test_a_plain_url_is_read_unchanged() -> None:
    assert parse_url("https://api.example.com/v1/items") == Target("https", "api.example.com", 443, "/v1/items")


def test_a_url_is_brought_into_canonical_form() -> None:
    target = parse_url(' HTTP://EXAMPLE.com.:0080/a b/ü?q="x"#fragment\n')

    assert target == Target("http", "example.com", 80, "/a%20b/%C3%BC?q=%22x%22")
    assert target.url == "http://example.com/a%20b/%C3%BC?q=%22x%22"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://example.com", "http://example.com/"),
        ("http://example.com?x", "http://example.com/?x"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com:/", "http://example.com/"),
        ("http://[2001:DB8:0::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://ex%61mple.com/", "http://example.com/"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com/%0d%0aX: y", "http://example.com/%0d%0aX:%20y"),
        ("http://example.com/\\@127.0.0.1/", "http://example.com/%5C@127.0.0.1/"),
        ("http://under_score.example/", "http://under_score.example/"),
    ],
)
def test_what_browsers_accept_is_accepted(url: str, shown: str) -> None:
    assert parse_url(url).url == shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "http:example.com",
        "http:/example.com/",
        "http:///example.com/",
        "http://",
        "http://:80/",
        "http://?x",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "jar:http://example.com/",
        "javascript:alert(1)",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:80:80/",
        "http://example.com:８0/",
        "http://example.com:-1/",
        "http://a..b/",
        "http://.example.com/",
        "http://example.com../",
        "http://-a.example/",
        "http://a-.example/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 130 + "example/",
        "http://exa mple.com/",
        "http://exa<mple.com/",
        "http://exa%00mple.com/",
        "http://exa%2fmple.com/",
        "http://exa%zzmple.com/",
        "http://exa%ffmple.com/",
        "http://%2531.example/",
        "http://a℀b.example/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[127.0.0.1]/",
        "http://[::①]/",
        "http://::1/",
        "http://exa\tmple.com/",
        "http://exa\nmple.com/",
        "http://example.com/\r\nHost: x",
        "http://example.com/\x00",
        "http://example.com/\ud800",
        "http://example.com/" + "a" * 9000,
    ],
)
def test_what_is_not_plainly_a_web_url_is_refused(url: str) -> None:
    refusal(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://example.com:80@10.0.0.1/",
        "http://allowed.example%40127.0.0.1/",
        "http://allowed.example\\@127.0.0.1/",
        "http://127.0.0.1\\@allowed.example/",
        "http://10.0.0.1;@allowed.example/",
        "http://google.com:80+&@127.88.23.245:22/",
    ],
)
def test_credentials_and_what_only_some_parsers_take_for_them_are_refused(url: str) -> None:
    refusal(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "0177.0.0.1",
        "017700000001",
        "0000000000000177.0x0.1",
        "0x7f.0x0.0x0.0x1",
        "１２７．０．０．１",
        "127。0。0。1",
        "127｡0｡0｡1",
        "①②⑦.⓪.⓪.①",
        "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
        "127.0.0.¹",
        "127\u00ad.0\u200b.0.1",
        "%31%32%37%2e0.0.1",
        "127%2e0%2e0%2e1",
    ],
)
def test_every_spelling_of_an_ipv4_address_is_that_address(host: str) -> None:
    assert parse_host(host) == ("127.0.0.1", IPv4Address("127.0.0.1"))


@pytest.mark.parametrize(
    "host",
    [
        "256.0.0.1",
        "1.2.3.4.5",
        "127.0.0.256",
        "127.65536.1",
        "4294967296",
        "0x100000000",
        "08.0.0.1",
        "1..2",
        "example.1",
        "example.0x1",
        "1.2.3.-4",
        "9" * 5000,
        "๑๒๗.๐.๐.๑",
        "١٢٧.٠.٠.١",
        "१२७.0.0.1",
    ],
)
def test_a_number_that_is_not_an_address_is_refused_rather_than_resolved(host: str) -> None:
    with pytest.raises(ToolError):
        parse_host(host)


def test_an_ipv6_address_is_canonical() -> None:
    assert parse_host("[::FFFF:127.0.0.1]") == ("::ffff:7f00:1", IPv6Address("::ffff:7f00:1"))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["%d", "0x%x", "0%o", "0x%X"]))
def test_a_number_means_the_address_that_the_c_library_takes_it_for(value: int, form: str) -> None:
    spelled = form % value

    assert parse_host(spelled)[1] == IPv4Address(socket.inet_aton(spelled.lower()))


_spelled = st.tuples(st.sampled_from(["%d", "0x%x", "0%o"]), st.integers(0, 300)).map(lambda pair: pair[0] % pair[1])


@given(st.lists(_spelled, min_size=1, max_size=5).map(".".join))
def test_whatever_the_c_library_takes_for_an_address_is_read_the_same_or_refused(host: str) -> None:
    try:
        expected = IPv4Address(socket.inet_aton(host))
    except OSError:
        with pytest.raises(ToolError):
            parse_host(host)
        return
    assert parse_host(host)[1] == expected


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://example.com{text}"):
        try:
            target = parse_url(url)
        except ToolError:
            refusal(url)
        else:
            assert target.url.isascii()
            assert parse_url(target.url) == target


def test_a_reference_that_makes_no_sense_is_left_as_it_is() -> None:
    assert join_url("http://a.example/b", "c") == "http://a.example/c"
    assert join_url("http://a.example/b", "http://[x/") == "http://[x/"
