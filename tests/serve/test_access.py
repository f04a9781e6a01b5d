"""HTTP access control: hosts, origins and tokens."""

import hashlib

import pytest

from toolreeve.core.call import Principal, Role
from toolreeve.core.errors import ConfigError
from toolreeve.record.credentials import SESSION
from toolreeve.serve.access import AccessControl, AccessRefused, Header, cookie_name, is_loopback, new_access_control
from toolreeve.serve.tokens import ANONYMOUS, AccessScope, Credential, Tokens, new_stored, read_tokens

SECRET = "a-token-that-nobody-guesses"
VAULT = {"ADA": SECRET, "SHORT": "short", "FOREIGN": "ünsichtbar-und-sehr-lang"}
ADA = {"token": "${secret:ADA}", "user": "ada", "role": "admin", "tools": ["file"]}


def reveal(reference: str) -> str:
    return VAULT[reference[9:-1]]


def request(host: str = "127.0.0.1:8733", **others: str) -> list[Header]:
    return [(b"host", host.encode()), *((name.encode(), value.encode()) for name, value in others.items())]


def status(gate: AccessControl, headers: list[Header]) -> int:
    try:
        gate.admit(headers)
    except AccessRefused as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8733", "localhost:1", "LOCALHOST", "[::1]:8733", "[::1]"])
def test_a_request_for_this_machine_comes_in(host: str) -> None:
    assert new_access_control("127.0.0.1", Tokens()).admit(request(host)) == ANONYMOUS


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8733",
        "localhost.evil.example",
        "127.0.0.1.evil.example:8733",
        "127.0.0.1@evil.example",
        "localhost:8733@evil.example",
        "127.0.0.1:8733:8733",
        "localhost.",
        "192.168.0.7",
        "[::2]",
        "127.0.0.1 ",
        "",
    ],
)
def test_a_request_for_another_host_name_is_refused(host: str) -> None:
    assert status(new_access_control("127.0.0.1", Tokens()), request(host)) == 421


def test_a_request_without_a_host_is_refused() -> None:
    assert status(new_access_control("127.0.0.1", Tokens()), []) == 421


@pytest.mark.parametrize("name", [b"host", b"origin", b"authorization"])
def test_a_header_that_appears_twice_is_refused_so_that_nobody_reads_the_other_one(name: bytes) -> None:
    twice = [*request(), (name, b"127.0.0.1:8733"), (name, b"evil.example")]

    assert status(new_access_control("127.0.0.1", Tokens()), twice) == 400


def test_a_page_of_our_own_may_send_requests() -> None:
    assert status(new_access_control("127.0.0.1", Tokens()), request(origin="http://127.0.0.1:8733")) == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:8733.evil.example", "http://localhost:3000", "file://", ""],
)
def test_a_foreign_origin_is_refused_even_from_this_machine(origin: str) -> None:
    assert status(new_access_control("127.0.0.1", Tokens()), request(origin=origin)) == 403


def test_configured_names_and_origins_are_let_in() -> None:
    gate = new_access_control("127.0.0.1", Tokens(), hosts=["Tools.Example"], origins=["https://app.example/"])

    assert status(gate, request("tools.example:443", origin="https://app.example")) == 200


def test_beyond_loopback_bare_addresses_are_fine_and_names_must_be_configured() -> None:
    gate = new_access_control("0.0.0.0", read_tokens([ADA], reveal))
    shown = {"authorization": f"Bearer {SECRET}"}

    assert [status(gate, request(host, **shown)) for host in ("192.168.0.7:8733", "[fe80::1]", "evil.example")] == [
        200,
        200,
        421,
    ]


def test_a_token_stands_for_its_user_role_and_tools() -> None:
    gate = new_access_control("127.0.0.1", read_tokens([ADA], reveal))

    assert gate.admit(request(authorization=f"bearer  {SECRET}")) == Credential(
        id=hashlib.sha256(SECRET.encode()).hexdigest()[:16],
        principal=Principal(user="ada", role=Role.ADMIN),
        tools=("file",),
        scopes=frozenset(AccessScope),
    )


@pytest.mark.parametrize(
    "shown", [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {SECRET}"}, {"authorization": SECRET}]
)
def test_with_tokens_configured_one_is_required_even_from_this_machine(shown: dict[str, str]) -> None:
    gate = new_access_control("127.0.0.1", read_tokens([ADA], reveal))

    with pytest.raises(AccessRefused) as refusal:
        gate.admit(request(**shown))

    assert (refusal.value.status, refusal.value.headers[0][0]) == (401, b"www-authenticate")


def test_an_invalid_host_is_reported_before_a_missing_token() -> None:
    assert status(new_access_control("127.0.0.1", read_tokens([ADA], reveal)), request("evil.example")) == 421


def test_a_token_can_be_configured_by_its_digest_alone() -> None:
    digest = hashlib.sha256(SECRET.encode()).hexdigest()

    tokens = read_tokens([{"sha256": digest.upper(), "user": "ada"}], reveal)

    assert tokens.find(f"Bearer {SECRET}".encode()) == tokens.credentials()[0]
    assert tokens.find(f"Bearer {digest}".encode()) is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"user": "ada"}, "either token or sha256"),
        ({"token": "${secret:ADA}", "sha256": "0" * 64, "user": "ada"}, "either token or sha256"),
        ({"token": SECRET, "user": "ada"}, "must not be written in plain text"),
        ({"token": "${secret:SHORT}", "user": "ada"}, "at least 16"),
        ({"token": "${secret:FOREIGN}", "user": "ada"}, "ASCII"),
        ({"sha256": "abc", "user": "ada"}, "SHA-256"),
        ({"token": "${secret:ADA}"}, "the token has no user"),
        ({"token": "${secret:ADA}", "user": "ada", "role": "root"}, "unknown role 'root'"),
    ],
)
def test_a_token_that_is_configured_badly_is_refused_with_the_fix(table: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as problem:
        read_tokens([table], reveal)

    assert problem.value.fix
    assert SECRET not in str(problem.value)


def test_one_token_for_two_people_is_refused() -> None:
    with pytest.raises(ConfigError, match="twice"):
        read_tokens([ADA, ADA | {"user": "bob"}], reveal)


def test_only_what_is_surely_this_machine_counts_as_loopback() -> None:
    places = ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "0.0.0.0", "::", "10.0.0.1", "myhost")

    assert [is_loopback(place) for place in places] == [True, True, True, True, True, False, False, False, False]


def test_a_server_is_known_by_the_name_it_listens_on() -> None:
    access = new_access_control("tools.example", Tokens())

    assert status(access, request("tools.example:8733")) == 200
    assert status(access, request("[tools.example]")) == 421


def test_without_a_listening_address_no_bare_address_is_a_host() -> None:
    assert status(AccessControl(), request("192.168.0.7")) == 421
    assert status(AccessControl(addresses=True), request("192.168.0.7")) == 200


def test_only_a_configured_origin_is_allowed_by_cors() -> None:
    access = new_access_control("127.0.0.1", Tokens(), origins=["https://app.example/"])

    assert access.allowed_origin(request(origin="https://APP.example")) == b"https://APP.example"
    assert access.allowed_origin(request(origin="http://127.0.0.1:8733")) is None
    assert access.allowed_origin(request()) is None


COOKIE = cookie_name("127.0.0.1:8733", secure=False)
COOKIE_VALUE = "ab" * 32


@pytest.fixture
def with_session() -> AccessControl:
    tokens = read_tokens([ADA], reveal)
    tokens.replace_stored([new_stored(COOKIE_VALUE, kind=SESSION, user="eve", role=Role.VIEWER, now=0.0)])
    return new_access_control("127.0.0.1", tokens)


def test_a_browser_session_counts_only_where_cookies_do(with_session: AccessControl) -> None:
    headers = request(cookie=f"other=1; {COOKIE}={COOKIE_VALUE}; more=2")

    assert with_session.admit(headers, cookies=True).principal == Principal(user="eve", role=Role.VIEWER)
    assert status(with_session, headers) == 401


def test_a_token_that_is_shown_decides_though_a_session_comes_with_it(with_session: AccessControl) -> None:
    cookie = f"{COOKIE}={COOKIE_VALUE}"

    shown = with_session.admit(request(cookie=cookie, authorization=f"Bearer {SECRET}"), cookies=True)
    with pytest.raises(AccessRefused, match="unknown bearer token"):
        with_session.admit(request(cookie=cookie, authorization="Bearer of-nothing"), cookies=True)

    assert shown.principal.user == "ada"


@pytest.mark.parametrize("cookie", ["", "other=1", f"{COOKIE}={'cd' * 32}", f"{COOKIE}={COOKIE_VALUE}0"])
def test_a_cookie_without_a_session_leaves_the_token_required(with_session: AccessControl, cookie: str) -> None:
    with pytest.raises(AccessRefused, match="a bearer token is required"):
        with_session.admit(request(cookie=cookie), cookies=True)
